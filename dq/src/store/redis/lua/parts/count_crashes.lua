--[[ count_crashes: counts the jobs that became DEAD because their nodes died.

Needs    plan; statistics
Holds    rule 33
Cost     that of `statistics`
]]
-- include count_dead.lua
keep_statistics()

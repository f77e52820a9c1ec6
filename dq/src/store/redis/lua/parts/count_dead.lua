--[[ count_dead: counts the jobs that a plan makes DEAD.

Needs    plan; statistics
Holds    rule 33
Cost     nothing
]]
count(6, #plan.dead / 2)

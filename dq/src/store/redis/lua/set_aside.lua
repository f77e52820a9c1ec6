--[[ set_aside: renames a key of another type, so that the topic can use its name. What is in it stays.

KEYS[1]  the key
KEYS[2]  its new name
ARGV[1]  the type that it should have

Returns  1 if it was renamed
Holds    rule 1: a key of the right type, and one that has the new name already, are left alone
Cost     O(1)
]]
local found = redis.call('TYPE', KEYS[1]).ok
if found == 'none' or found == ARGV[1] or redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('RENAME', KEYS[1], KEYS[2])
return 1

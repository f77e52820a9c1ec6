--[[ raise: sets a field of a hash that is missing, or smaller.

KEYS[1]  the key
ARGV[1]  the field
ARGV[2]  the number that it has at least

Returns  1 if it was set
Holds    rule 1
Cost     O(1)
]]
if (tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '') or 0) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1

--[[ forget: removes a field of a hash whose number is too large, or that has no number.

KEYS[1]  the key
ARGV[1]  the field
ARGV[2]  the most that it may have

Returns  1 if it was removed
Holds    rule 9: the next claim writes a fence that follows the clock
Cost     O(1)
]]
local value = redis.call('HGET', KEYS[1], ARGV[1])
if not value then return 0 end
local number = tonumber(value)
if number and number <= tonumber(ARGV[2]) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])

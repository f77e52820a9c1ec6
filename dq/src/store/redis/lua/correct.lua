--[[ correct: writes what `meta` lacks: a field that is missing, or `largest` if it is smaller. Or removes `fence`, if it is too large or no
number.

KEYS[1]  the key
ARGV[1]  the field
ARGV[2]  its number
ARGV[3]  the most that `fence` may be

Returns  1 if it was written or removed
Holds    rules 1, 9: the next claim writes a fence that follows the clock
Cost     O(1)
]]
local known = redis.call('HGET', KEYS[1], ARGV[1])
local number = tonumber(known)
if ARGV[1] == 'fence' then
  return known and not (number and number <= tonumber(ARGV[3])) and redis.call('HDEL', KEYS[1], ARGV[1]) or 0
end
-- Another `protocol` belongs to another version of dq.
if known and (ARGV[1] ~= 'largest' or (number or 0) >= tonumber(ARGV[2])) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1

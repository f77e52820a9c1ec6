--[[ raise: writes what `meta` lacks: a field that is missing, or `largest` if it is smaller.

KEYS[1]  the key
ARGV[1]  the field
ARGV[2]  its number

Returns  1 if it was set
Holds    rule 1
Cost     O(1)
]]
local known = redis.call('HGET', KEYS[1], ARGV[1])
-- Another `protocol` belongs to another version of dq.
if known and (ARGV[1] ~= 'largest' or (tonumber(known) or 0) >= tonumber(ARGV[2])) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1

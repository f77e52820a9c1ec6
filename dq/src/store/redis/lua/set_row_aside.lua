--[[ set_row_aside: moves a row that dq did not write into a hash beside the keys of its topic. What was in it stays there.

KEYS[1]  the key, a HASH or a ZSET
KEYS[2]  the hash for such rows
KEYS[3]  of one of two records of a job: the hash that has the other one
ARGV[1]  the type of the key: hash or zset
ARGV[2]  the field or the member
ARGV[3]  its value or score
ARGV[4]  with KEYS[3]: how many bytes the other record has at least

Returns  1 if it was moved
Holds    rule 1: a row that has changed meanwhile is left alone. It reads and checks first, and begins with a removal
Cost     O(log n)
]]
local is_hash, found, rest = ARGV[1] == 'hash', nil, redis.call('TYPE', KEYS[2]).ok
if rest ~= 'none' and rest ~= 'hash' or redis.call('TYPE', KEYS[1]).ok ~= ARGV[1] then return 0 end
if is_hash then found = redis.call('HGET', KEYS[1], ARGV[2]) else found = redis.call('ZSCORE', KEYS[1], ARGV[2]) end
if not found or redis.call('HEXISTS', KEYS[2], ARGV[2]) == 1 then return 0 end
if is_hash and found ~= ARGV[3] or not is_hash and tonumber(found) ~= tonumber(ARGV[3]) then return 0 end
if KEYS[3] then
  local other = redis.call('TYPE', KEYS[3]).ok == 'hash' and redis.call('HGET', KEYS[3], ARGV[2])
  if not other or #other < tonumber(ARGV[4]) then return 0 end
end
redis.call(is_hash and 'HDEL' or 'ZREM', KEYS[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[2], found)
return 1

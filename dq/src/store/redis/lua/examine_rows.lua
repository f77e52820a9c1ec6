--[[ examine_rows: reads a page of rows of the first of some keys that is there. Reads only.

KEYS     HASH and ZSET keys of a topic
ARGV[1]  the number of the key at which it begins, from 0
ARGV[2]  a cursor in that key
ARGV[3]  and on: the type that each key should have, hash or zset, and about how many rows to read of it. One of another type is passed over

Returns  {number of the key, cursor of the next page or 0, each field or member and its value or score}; the number of all keys, 0 and nothing at the end
Holds    rules 1, 5
Cost     O(page)
]]
local n, cursor = ARGV[1] + 1, ARGV[2]
while KEYS[n] do
  local expected = ARGV[2 * n + 1]
  if redis.call('TYPE', KEYS[n]).ok == expected then
    local page = redis.call(expected == 'hash' and 'HSCAN' or 'ZSCAN', KEYS[n], cursor, 'COUNT', ARGV[2 * n + 2])
    return {n - 1, page[1], page[2]}
  end
  n, cursor = n + 1, '0'
end
return {#KEYS, '0', {}}

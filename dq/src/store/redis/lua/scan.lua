--[[ scan: reads all leases and compares the number of records with the sum of all places (the audit).

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:delayed       ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked       ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done          ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:leases        ZSET  node -> end of its lease, ms
KEYS[7]  {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  and on: the nodes whose rows are counted

Returns  {again, clock ms, leases as node, end, ..., records, places}; again is 1 if `leases` has a node that ARGV does
         not name, and then records and places say nothing
Holds    rules 20, 26
Cost     O(nodes log nodes)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- include clock.lua
local is_counted, places, again = {}, 0, 0
for i, node in ipairs(ARGV) do
  is_counted[node] = true
  places = places + redis.call('HLEN', KEYS[6 + i])
end
-- include cut.lua
local lease_ends = redis.call('ZRANGE', leases, 0, -1, 'WITHSCORES')
for i = 1, #lease_ends, 2 do
  if not is_counted[lease_ends[i]] then again = 1 end
end
for _, place in ipairs({delayed, unacked, dead, done}) do places = places + redis.call('ZCARD', place) end
return {again, floor, lease_ends, redis.call('HLEN', jobs), places}

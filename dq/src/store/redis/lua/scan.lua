--[[ scan: all lease ends, and the audit: records against the sum of all places.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:delayed       ZSET  job id scored by due time, ms
KEYS[3]  {app:topic}:unacked       ZSET  job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET  job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done          ZSET  job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:leases        ZSET  node scored by the end of its lease, ms
KEYS[7]  {app:topic}:running:NODE  HASH  job id -> token; and on: of every node the caller read
ARGV[1]  and on: these nodes

Returns  {again, clock ms, leases as node, end, ..., records, places}; again is 1 where `leases` names a node that the
         caller did not, and then the places are none
Holds    rules 20, 26
Cost     O(nodes log nodes)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- include clock.lua
local read, places, again = {}, 0, 0
for i, node in ipairs(ARGV) do
  read[node] = true
  places = places + redis.call('HLEN', KEYS[6 + i])
end
-- include cut.lua
local ends = redis.call('ZRANGE', leases, 0, -1, 'WITHSCORES')
for i = 1, #ends, 2 do
  if not read[ends[i]] then again = 1 end
end
for _, place in ipairs({delayed, unacked, dead, done}) do places = places + redis.call('ZCARD', place) end
return {again, floor, ends, redis.call('HLEN', jobs), places}

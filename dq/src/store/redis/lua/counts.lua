--[[ counts: counts the jobs in each place. Reads only.

KEYS[1]  {app:topic}:jobs        HASH  job id -> record
KEYS[2]  {app:topic}:delayed     ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked     ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead        ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done        ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts  ZSET  broadcast id -> due time, ms

Returns  {clock ms, records, delayed, ready, unacked, dead, done, broadcasts, head ms or -1}
Holds    rule 2: a job with a record that is in none of the places is RUNNING
Cost     O(log delayed)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- include clock.lua
local function size(place) return redis.call('ZCARD', place) end
return {
  floor, redis.call('HLEN', jobs), size(delayed), redis.call('ZCOUNT', delayed, '-inf', int(floor)), size(unacked), size(dead),
  size(done), size(broadcasts), tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or -1),
}

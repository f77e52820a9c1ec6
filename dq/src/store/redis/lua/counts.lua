--[[ counts: how many jobs are where. Reads only.

KEYS[1]  {app:topic}:jobs     HASH  job id -> record
KEYS[2]  {app:topic}:delayed  ZSET  job id scored by due time, ms
KEYS[3]  {app:topic}:unacked  ZSET  job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead     ZSET  job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done     ZSET  job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:broadcasts  ZSET  broadcast id scored by due time, ms

Returns  {clock ms, jobs, delayed, ready, unacked, dead, done, broadcasts, head ms or -1}
Holds    a job that is in none of the places runs
Cost     O(log delayed)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- include clock.lua
local function card(place) return redis.call('ZCARD', place) end
return {
  floor, redis.call('HLEN', jobs), card(delayed), redis.call('ZCOUNT', delayed, '-inf', int(floor)), card(unacked), card(dead),
  card(done), card(broadcasts), tonumber(redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2] or -1),
}

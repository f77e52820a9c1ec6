--[[ overview: a topic as a whole, for people. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:delayed       ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked       ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done          ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts    ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:far           ZSET  bounds of the leaves of jobs that are due much later
KEYS[8]  {app:topic}:far-jobs      HASH  job id -> due time and record of such a job
KEYS[9]  {app:topic}:far-leaves    HASH  bound -> ids of the leaf, as a list of MessagePack
KEYS[10] {app:topic}:leases        ZSET  node -> end of its lease, ms
KEYS[11] {app:topic}:meta          HASH  paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst, shut, opens, roles
KEYS[12] {app:topic}:statistics    HASH  minute modulo 1440 -> what was counted in that minute
KEYS[13] {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV, from the second on
ARGV[1]  the most nodes, 0..=100
ARGV[2]  and on: the nodes whose rows are counted

Returns  {counts as the step counts, nodes with a lease, leases, each as {node, end, its rows or 0 if it is not in ARGV}, what was counted in the present
         minute and in the five before it, or nil if nothing was for a day, ready jobs by priority: {normal, high, low, then the same of blocked jobs},
         {watcher, its end ms}, {standby, its end ms}, {paused, draining, delay, concurrency, rate, waiting, group_concurrency, group_rate,
         group_waiting, group_burst}, shut, when the rate opens µs}
Holds    rules 8, 23, 29, 31
Cost     that of counts, and one HLEN for each node in ARGV
]]
-- include clock.lua
-- include far.lua
-- include counted.lua
local most, rows_of, held = tonumber(ARGV[1]), {}, {}
for n = 2, #ARGV do rows_of[ARGV[n]] = redis.call('HLEN', KEYS[FIRST + n - 2]) end
local ends = most > 0 and redis.call('ZRANGE', KEYS.leases, 0, most - 1, 'WITHSCORES') or {}
for i = 1, #ends, 2 do
  held[#held + 1] = {ends[i], ends[i + 1], rows_of[ends[i]] or 0}
end
local m = redis.call('HMGET', KEYS.meta, 'watcher', 'watcher-until', 'standby', 'standby-until', 'paused', 'draining', 'delay',
  'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_rate', 'group_max_waiting', 'group_burst', 'shut', 'opens')
for n = 1, 6 do by_shift[n] = by_shift[n] or 0 end
local recent = false
if redis.call('EXISTS', KEYS.statistics) == 1 then
  local minute, slots = math.floor(floor / 60000), {}
  for back = 5, 0, -1 do slots[#slots + 1] = int((minute - back) % 1440) end
  recent = redis.call('HMGET', KEYS.statistics, unpack(slots))
end
return {counted, size(KEYS.leases), held, recent, by_shift, {m[1], m[2]}, {m[3], m[4]}, {unpack(m, 5, 14)}, m[15], m[16]}

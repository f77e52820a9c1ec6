--[[ scan: reads all leases and compares the number of records with the sum of all places (the audit).

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:delayed       ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked       ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done          ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:leases        ZSET  node -> end of its lease, ms
KEYS[7]  {app:topic}:meta          HASH  far, far-lost, paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, outbox
KEYS[8]  {app:topic}:far           ZSET  bounds of the leaves of jobs that are due much later
KEYS[9]  {app:topic}:far-jobs      HASH  job id -> due time and record of such a job
KEYS[10] {app:topic}:grouped       ZSET  waiting jobs and seats of groups, all with score 0
KEYS[11] {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  and on: the nodes whose rows are counted

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, clock ms, leases as node, end, ...,
         records, places, the state of the topic (the part `told`) or nil, 1 if an outcome has ever had follow-ups}
Holds    rules 2, 20, 29
Cost     O(nodes log nodes)
]]
-- include types.lua
local NODES = ARGV
-- include clock.lua
-- include bulk.lua
-- include holders.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
local places = 0
for n = 1, #NODES do places = places + redis.call('HLEN', KEYS[FIRST + n - 1]) end
local later, bound = redis.call('HLEN', KEYS.far_jobs), redis.call('ZRANGE', KEYS.far, 0, 0)[1]
local far_at, far_lost, paused, draining, usual, concurrency, rate, waiting, group_concurrency, group_rate, group_waiting, group_burst, priorities, has_groups, follow_ups =
  unpack(redis.call('HMGET', KEYS.meta, 'far', 'far-lost', 'paused', 'draining', 'delay', 'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_rate', 'group_max_waiting', 'group_burst', 'priorities', 'groups', 'outbox'))
local opens_at, drained_at, left = nil, nil, 0
if paused or draining then
  -- include gate.lua
  for shift = 0, has_groups and 5 * PRIORITY or priorities and 2 * PRIORITY or 0, PRIORITY do
    if drained_at then left = left + redis.call('ZCOUNT', KEYS.delayed, shift > 0 and int(shift) or '-inf', int(shift + drained_at)) end
  end
  left = math.min(left, 10000)
end
-- include cut.lua
-- The next transfer brings near what `meta` says, so another program that changed it must not keep jobs away.
local base = bound and (tonumber(string.match(bound, '^' .. string.rep('%d', 15))) or 0)
if bound and not ((tonumber(far_at or '') or math.huge) <= base) then
  redis.call('HSET', KEYS.meta, 'far', int(base))
end
-- How many jobs have lost their leaf is not known, so they count as one.
if later > 0 and (far_lost or not bound) then places = places - 1 end
local lease_ends = redis.call('ZRANGE', KEYS.leases, 0, -1, 'WITHSCORES')
for _, place in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do places = places + redis.call('ZCARD', place) end
if has_groups then
  -- rare open_groups.lua
end
-- include told.lua
return {0, floor, lease_ends, redis.call('HLEN', KEYS.jobs) + later, places + later, told, follow_ups and 1 or 0}

--[[ transfer: DELAYED -> RUNNING. Claims due jobs, earliest first, or as their priorities say. Takes a sequence number and renews.

KEYS[1]  {app:topic}:jobs           HASH    job id -> record
KEYS[2]  {app:topic}:delayed        ZSET    job id -> due time, ms
KEYS[3]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[4]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[5]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[6]  {app:topic}:crashes        HASH    job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[7]  {app:topic}:meta           HASH    protocol, fence, largest, priorities, watcher, standby, paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst, opens, shut, rates, events, history
KEYS[8]  {app:topic}:metadata       HASH    job id -> metadata that override those of its record
KEYS[9]  {app:topic}:far            ZSET    bounds of the leaves of jobs that are due much later
KEYS[10] {app:topic}:far-jobs       HASH    job id -> due time and record of such a job
KEYS[11] {app:topic}:far-leaves     HASH    bound -> ids of the leaf, as a list of MessagePack
KEYS[12] {app:topic}:unacked        ZSET    job id -> when it was parked, ms
KEYS[13] {app:topic}:dead           ZSET    job id -> when it became DEAD, ms
KEYS[14] {app:topic}:done           ZSET    job id -> end of its retention, ms
KEYS[15] {app:topic}:grouped        ZSET    waiting jobs and seats of groups, all with score 0
KEYS[16] {app:topic}:broadcasts     ZSET    broadcast id -> due time, ms
KEYS[17] {app:topic}:history        HASH    job id -> history
KEYS[18] {app:topic}:history-ends   ZSET    id of a job that is gone -> when its history is forgotten, ms
KEYS[19] {app:topic}:members        HASH    job id -> job set that the job is a member of
KEYS[20] {app:topic}:outbox         ZSET    follow-ups that have not arrived, all with score 0
KEYS[21] {app:topic}:ticks          ZSET    id of a schedule -> when its next tick is, or an earlier time
KEYS[22] {app:topic}:statistics     HASH    minute -> what was counted; only if the link counts
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  limit, 1..=1000
ARGV[4]  lease, ms
ARGV[5]  fallback, µs: how long a node sleeps at most
ARGV[6]  the most bytes of records; one record may have more
ARGV[7]  lookahead, ms: jobs that become due within it are claimed as well, and the node comes half of it before the head
ARGV[8]  ageing, ms: for how much longer a due job may have waited that one of the next higher priority overtakes
ARGV[9]  how many jobs of a group may have a seat, as the code of the node says; 0: any number
ARGV[10] how many jobs of each group all nodes may claim within a period, JOBS/MS/BURST, as that code says; empty: any number
ARGV[11] how many more jobs of a group may have a seat while nothing else is due, as that code says
ARGV[12] how many jobs may be RUNNING on all nodes, as that code says; 0: any number
ARGV[13] how many jobs all nodes may claim within a period, as that code says; empty: any number

Returns  {0, sequence number, rows} if last_seen is not the stored sequence number, otherwise {1, sequence number, rows,
         clock µs, role (0 none, 1 watcher, 2 standby watcher), how long to sleep µs, more, the node with the earliest
         lease of another node or '', the end of that lease, ids, tokens (each and how many jobs have it, one after the other), records
         (ids and records packed with `cmsgpack` if they are more than 32), metadata that override theirs or nil, crash counts or nil, dropped ids or nil, the state of the topic (the part `told`, with
         the number of jobs that a draining topic still runs) or nil}
Holds    rules 1, 2, 5, 6, 8, 9, 20, 23, 29, 31. It reads each key before its first write, which checks the types
Cost     O(limit log delayed), and up to 268 jobs that come near. A transfer that claims one job, with at most two nodes: 13 commands
]]
local node, last_seen, limit, lease, fallback, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local lookahead, ageing, STANDBY_DELAY, ROLE_SLACK, NEAR, MAX_LEFT = tonumber(ARGV[7]), tonumber(ARGV[8]), 250, 200, FAR / 2, 10000
local stored = redis.call('GET', KEYS.sequence)
if stored ~= last_seen then return {0, tonumber(stored or '') or 0, redis.call('HLEN', KEYS.running)} end
local protocol, last_fence, largest, watcher, watcher_until, watcher_told, standby, standby_until, standby_told, far_at, paused,
  draining, usual, events, history_setting, concurrency, rate, waiting, group_concurrency, group_rate, group_waiting, group_burst, shut, opens, priorities, has_groups, tells_moves, by_code = unpack(redis.call('HMGET', KEYS.meta, 'protocol', 'fence', 'largest', 'watcher',
    'watcher-until', 'watcher-told', 'standby', 'standby-until', 'standby-told', 'far', 'paused', 'draining', 'delay', 'events', 'history',
    'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_rate', 'group_max_waiting', 'group_burst', 'shut', 'opens', 'priorities', 'groups', 'members', 'rates'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end
-- include clock.lua
local note, keep_notes
if events or history_setting or KEYS.statistics or tells_moves then
  -- rare recorder.lua
end
local reach, opens_at, drained_at = floor + lookahead, nil, nil
if paused or draining then
  -- rare gate.lua
  if opens_at then reach = -1 elseif drained_at then reach = math.min(reach, drained_at) end
end
local place, latest, are_elsewhere, choose, seated = KEYS.delayed, reach, nil, nil, nil
-- The notes of groups and of priorities are written together; another program may have removed one.
far_at, priorities = far_at and tonumber(far_at), priorities or has_groups
if far_at and far_at <= floor + NEAR then
  -- rare move.lua
  -- What has not come near yet goes before what is due later.
  if far_at then latest = math.min(latest, far_at) end
end
local limited, in_runs, pace, next_tick = concurrency or rate or ARGV[12] ~= '0' or ARGV[13] ~= '', nil, nil, nil
if limited or priorities then
  -- rare ticks.lua
end
local earliest = redis.call('ZRANGE', KEYS.leases, '0', '2', 'WITHSCORES')
-- include claim.lua
if seated then seated() end
-- Of fewer than three leases the last one is known, and with it whether one is too long.
if earliest[6] or tonumber(earliest[4] or earliest[2] or 0) > floor + MAX_LEASE then
  -- rare cut.lua
end
local head
if priorities then
  -- rare head.lua
elseif is_short then head = front[2 * n + 2] else head = call('ZRANGE', KEYS.delayed, '0', '0', 'WITHSCORES')[2] end
head = head and tonumber(head)
local come_at, first_due, left = head and head - math.ceil(lookahead / 2), math.min(head or math.huge, far_at or math.huge), 0
if far_at then come_at = math.min(come_at or math.huge, far_at > floor + NEAR and far_at - NEAR or floor + 5) end
if opens_at then
  come_at = opens_at < math.huge and opens_at or nil
elseif drained_at then
  -- rare drained.lua
end
if pauses and pauses.next < 9999999999999999 then come_at = math.min(come_at or math.huge, pauses.next) end
local more = first_due <= reach
if limited or pace or shut or choose then
  -- rare shut.lua
end
if by_code or ARGV[10] ~= '' or ARGV[13] ~= '' then
  -- rare says.lua
end
local wake_at, role, taken = after(fallback), 0, nil
watcher_until, standby_until = tonumber(watcher_until or '') or 0, tonumber(standby_until or '') or 0
local last_lapse = wake_at + math.ceil((wake_at - floor) / 4) + ROLE_SLACK
if watcher_until > last_lapse or standby_until > last_lapse then
  -- rare lapse.lua
  watcher_until, standby_until = lapse('watcher', watcher_until, wake_at), lapse('standby', standby_until, wake_at)
end
if not watcher or watcher == node or floor > watcher_until then
  role, taken = 1, 'watcher'
  wake_at = math.min(come_at or wake_at, wake_at)
  if standby == node then call('HDEL', KEYS.meta, 'standby', 'standby-until') end
elseif not standby or standby == node or floor > standby_until then
  role, taken = 2, 'standby'
  wake_at = math.min(come_at and come_at + STANDBY_DELAY or wake_at, wake_at)
end
if taken then
  local count = #changes
  changes[count + 1], changes[count + 2] = taken, node
  changes[count + 3], changes[count + 4] = taken .. '-until', format('%d', math.max(wake_at, floor) + ROLE_SLACK)
end
if changes[1] then call('HSET', KEYS.meta, unpack(changes)) end
if keep_notes then keep_notes() end
local other = earliest[1] == node and 3 or 1
-- include told.lua
return {
  1, tonumber(sequence_number), rows, micros, role, math.max(wake_at * 1000 - micros, 0), more and 1 or 0,
  earliest[other] or '', math.min(tonumber(earliest[other + 1] or 0), floor + MAX_LEASE), ids, tokens, records, overrides,
  crash_counts, dropped, told,
}

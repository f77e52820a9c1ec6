--[[ settle: moves jobs from RUNNING to where their outcomes say, if the tokens are those of their rows. Renews.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:running:NODE    HASH     job id -> token
KEYS[9]  {app:topic}:leases          ZSET     node -> end of its lease, ms
KEYS[10] {app:topic}:sequence:NODE   STRING   sequence number of the node
KEYS[11] {app:topic}:pending         HASH     job id -> pending command
KEYS[12] {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[13] {app:topic}:meta            HASH     protocol, retains, shut, priorities, watcher, publisher, events, history, members
KEYS[14] {app:topic}:wake            CHANNEL  signals for every node
KEYS[15] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[16] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[17] {app:topic}:far-jobs        HASH     job id -> due time and record of a job that is due much later
KEYS[18] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[19] {app:topic}:history         HASH     job id -> history
KEYS[20] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[21] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[22] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[23] {app:topic}:schedules       ZSET     ids of schedules; only if a schedule had a tick, or the link counts
KEYS[24] {app:topic}:ticks           ZSET     id of a schedule -> when its next tick is, or an earlier time
KEYS[25] {app:topic}:statistics      HASH     minute -> what was counted; only if the link counts
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  the most bytes of replacements; one may have more
ARGV[5]  n: the number of acks without new metadata
ARGV[6]  m: the number of their tokens
ARGV[7]  and on: n ids; then m times a token and how many of these acks have it, in their order; then id, token, outcome,
         argument, metadata ('' = unchanged), as `leave` in parts/leave.lua takes them

Returns  {sequence number, rows, positions of stale outcomes, positions of dropped outcomes (their record was missing),
         positions of outcomes that were left for a later request}
Holds    rules 1, 2, 5, 6, 8, 10, 13, 18, 19, 29, 30, 31. It reads each key before its first write, but `jobs`, which it writes first
Cost     an ack: one HMGET field and two HDEL fields; any other outcome: O(log n). Payloads are not read, but those of
         replacements. A settle that only acks: nine commands for the last rows of the node, ten otherwise
]]
local node, last_seen, lease, most, acks = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local call, format, others = redis.call, string.format, 7 + acks + 2 * ARGV[6]
local protocol, retains, watcher, watcher_until, events, history_setting, shut, priorities, has_groups, tells_moves =
  unpack(call('HMGET', KEYS.meta, 'protocol', 'retains', 'watcher', 'watcher-until', 'events', 'history', 'shut', 'priorities', 'groups', 'members'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end
local stored, rare, stale, note, keep_notes = call('GET', KEYS.sequence), call('EXISTS', KEYS.pending, KEYS.crashes, KEYS.metadata), {}
local has_pending = rare > 0 and call('EXISTS', KEYS.pending) == 1
if acks == 0 or others <= #ARGV or has_pending or retains or shut or has_groups or tells_moves then
  -- rare outcomes.lua
end
-- There are only acks, and no job leaves anything behind. That is nearly every settle, so it makes no function, and takes the ids
-- straight from ARGV.
local tokens, from = call('HMGET', KEYS.running, unpack(ARGV, 7, 6 + acks)), 0
for group = 7 + acks, others - 1, 2 do
  local token, to = ARGV[group], from + ARGV[group + 1]
  for i = from + 1, to do
    if tokens[i] ~= token then stale[#stale + 1] = i end
  end
  from = to
end
local held = call('HLEN', KEYS.running)
call('ZCARD', KEYS.leases)
if rare > 0 then
  call('HLEN', KEYS.crashes)
  call('HLEN', KEYS.metadata)
end
local ids, first, last = ARGV, 7, 6 + acks
if #stale > 0 then
  local next_stale = 1
  ids, first, last = {}, 1, acks - #stale
  for i = 1, acks do
    if stale[next_stale] == i then next_stale = next_stale + 1 else ids[#ids + 1] = ARGV[6 + i] end
  end
end
if events or history_setting or KEYS.statistics then
  -- include clock.lua
  -- rare recorder.lua
  note('k', '', node, ids, first, last)
  note('ea', '', node, ids, first, last)
end
if first > last then
  call('HDEL', KEYS.running, '')
else
  call('HDEL', KEYS.jobs, unpack(ids, first, last))
  held = held - call('HDEL', KEYS.running, unpack(ids, first, last))
  if rare > 0 then
    call('HDEL', KEYS.crashes, unpack(ids, first, last))
    call('HDEL', KEYS.metadata, unpack(ids, first, last))
  end
end
if keep_notes then keep_notes() end
if held == 0 then
  call('ZREM', KEYS.leases, node)
elseif stored == last_seen then
  -- include clock.lua
  call('ZADD', KEYS.leases, format('%d', floor + math.min(lease, MAX_LEASE)), node)
end
return {tonumber(stored or '') or 0, held, stale, {}, {}}

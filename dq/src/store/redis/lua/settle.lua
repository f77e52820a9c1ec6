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
KEYS[13] {app:topic}:meta            HASH     protocol, retains, watcher, publisher
KEYS[14] {app:topic}:wake            CHANNEL  signals for every node
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  n: the number of acks without new metadata
ARGV[5]  and on: n times id, token; then id, token, outcome, argument, metadata ('' = unchanged), as `leave` in
         parts/leave.lua takes them

Returns  {sequence number, rows, positions of stale outcomes, positions of dropped outcomes (their record was missing)}
Holds    rules 2, 3, 6, 8, 10, 12, 13, 16, 17, 19
Cost     an ack: one HMGET field and two HDEL fields; any other outcome: O(log n)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local running, leases, sequence, pending, crashes, meta, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local node, last_seen, lease, acks = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include pending.lua
-- include leave.lua
-- include lease.lua
local ids, at = {}, {}
for i = 1, acks do ids[i] = ARGV[3 + 2 * i] end
for i = 5 + 2 * acks, #ARGV, 5 do
  ids[#ids + 1] = ARGV[i]
  at[#ids] = i
end
local tokens, stale, dropped = read('HMGET', running, ids), {}, {}
-- Ids of acked jobs that only need to be removed, and positions of the outcomes that need more.
local removed, planned = {}, {}
local has_rare = redis.call('EXISTS', pending, crashes) > 0
local is_plain = not has_rare and not has_retains
for i = 1, acks do
  if tokens[i] ~= ARGV[4 + 2 * i] then
    stale[#stale + 1] = i
  elseif is_plain then
    removed[#removed + 1] = ids[i]
  else
    planned[#planned + 1] = i
  end
end
for i = acks + 1, #ids do
  if tokens[i] ~= ARGV[at[i] + 1] then stale[#stale + 1] = i else planned[#planned + 1] = i end
end
if #planned > 0 then
  wrong = wrong_type(true)
  if wrong then return wrong end
end
redis.call('HDEL', pending, '')
write('HDEL', running, removed)
write('HDEL', jobs, removed)
if #planned > 0 then
  local planned_ids, positions = {}, {}
  for k, i in ipairs(planned) do
    planned_ids[k] = ids[i]
    positions[ids[i]] = i
  end
  local records = read('HMGET', jobs, planned_ids)
  local commands = has_rare and read('HMGET', pending, planned_ids) or {}
  local crash_texts = has_rare and read('HMGET', crashes, planned_ids) or {}
  for k, i in ipairs(planned) do
    local outcome, argument, metadata = 'a', '', ''
    if i > acks then outcome, argument, metadata = ARGV[at[i] + 2], ARGV[at[i] + 3], ARGV[at[i] + 4] end
    leave(ids[i], tokens[i], records[k] or nil, parse_command(commands[k]), crash_texts[k], outcome, argument, metadata)
  end
  for k, id in ipairs(plan.dropped) do
    dropped[k] = positions[id]
    push(plan.removed_jobs, id)
  end
  write_plan()
end
local sequence_number, rows = update_lease()
return {sequence_number, rows, stale, dropped}

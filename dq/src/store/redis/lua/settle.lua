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
KEYS[13] {app:topic}:meta            HASH     protocol, retains, watcher, publisher, events, history
KEYS[14] {app:topic}:wake            CHANNEL  signals for every node
KEYS[15] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[16] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[17] {app:topic}:far-jobs        HASH     job id -> due time and record of a job that is due much later
         If a schedule had a tick or the link counts, the next key is {app:topic}:schedules, a ZSET with the ids of schedules
         If the link counts, the last key is {app:topic}:statistics, a HASH with what was counted
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
Holds    rules 2, 3, 5, 6, 8, 10, 12, 13, 16, 17, 19, 30
Cost     an ack: one HMGET field and two HDEL fields; any other outcome: O(log n). Payloads are not read, but those of
         replacements. A settle that only acks: nine commands for the last rows of the node, ten otherwise
]]
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local running, leases, sequence, pending, crashes = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local meta, wake, metadata, replacements, far_jobs = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local node, last_seen, lease, most, acks = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local call, format, others = redis.call, string.format, 7 + acks + 2 * ARGV[6]
local protocol, retains, watcher, watcher_until, events, history =
  unpack(call('HMGET', meta, 'protocol', 'retains', 'watcher', 'watcher-until', 'events', 'history'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end
local stored = call('GET', sequence)
-- include count_first.lua
-- include plain_acks.lua
-- include count_acks.lua
if is_plain and (held == 0 or stored ~= last_seen) then return {tonumber(stored or 0), held, stale, {}, {}} end
-- include clock.lua
if is_plain then
  call('ZADD', leases, format('%d', floor + math.min(lease, LONGEST_LEASE)), node)
  return {tonumber(stored), held, stale, {}, {}}
end
-- include types.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include moves.lua
-- include leave.lua
-- include lease.lua
local ids, expected, at = {}, {}, {}
for i = 1, acks do ids[i] = ARGV[6 + i] end
for group = 7 + acks, others - 1, 2 do
  for _ = 1, ARGV[group + 1] do expected[#expected + 1] = ARGV[group] end
end
for i = others, #ARGV, 5 do
  ids[#ids + 1], expected[#ids + 1] = ARGV[i], ARGV[i + 1]
  at[#ids] = i
end
local tokens, dropped, later = read('HMGET', running, ids), {}, {}
-- Positions of outcomes of this node's runs: acks that only remove the job, and those that need more.
local plain, planned = {}, {}
for i = 1, #ids do
  if tokens[i] ~= expected[i] then
    stale[#stale + 1] = i
  elseif i > acks or has_pending or retains then
    planned[#planned + 1] = i
  else
    plain[#plain + 1] = ids[i]
  end
end
for _, i in ipairs(planned) do
  -- A key of a wrong type is found before the first write.
  if i > acks and ARGV[at[i] + 2] == 'n' then redis.call('ZCARD', KEYS[18]) end
end
if rare > 0 or #planned > 0 then
  wrong = wrong_type(true)
  if wrong then return wrong end
end
local planned_ids, positions, commands, texts = {}, {}, {}, {}
for k, i in ipairs(planned) do
  planned_ids[k] = ids[i]
  positions[ids[i]] = i
end
if has_pending then
  if redis.call('EXISTS', replacements) == 1 then
    for k = #planned, fitting({replacements}, planned_ids, most) + 1, -1 do
      later[#later + 1] = planned[k]
      planned[k], planned_ids[k] = nil, nil
    end
  end
  commands = read('HMGET', pending, planned_ids)
end
if #planned > 0 then
  -- Of an ack without a pending command, only a retention matters.
  local reads = {}
  for k, i in ipairs(planned) do
    if i > acks or retains or commands[k] then reads[#reads + 1] = ids[i] end
  end
  for k, text in ipairs(metadata_of(reads)) do texts[reads[k]] = text end
end
local crash_texts = rare > 0 and read('HMGET', crashes, planned_ids) or {}
redis.call('HDEL', pending, '')
write('HDEL', running, plain)
write('HDEL', jobs, plain)
if rare > 0 then
  write('HDEL', crashes, plain)
  write('HDEL', metadata, plain)
end
for _, id in ipairs(plain) do note_move('k', '', node, id) end
local function end_plan()
  for _, id in ipairs(plan.dropped) do dropped[#dropped + 1] = positions[id] end
  -- include count_dead.lua
  write_plan()
end
if #planned > 0 then
  for k, i in ipairs(planned) do
    local outcome, argument, new = 'a', '', ''
    if i > acks then outcome, argument, new = ARGV[at[i] + 2], ARGV[at[i] + 3], ARGV[at[i] + 4] end
    -- A tick adds jobs, so it has to see what the others have done. Ticks are the last of the request.
    if outcome == 'n' then
      end_plan()
      begin_plan()
    end
    leave(ids[i], tokens[i], texts[ids[i]], parse_command(commands[k]), crash_texts[k], outcome, argument, new)
  end
  end_plan()
end
local sequence_number, rows = update_lease()
-- include count_runs.lua
tell_moves()
return {sequence_number, rows, stale, dropped, later}

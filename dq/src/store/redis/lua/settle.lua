--[[ settle: RUNNING -> wherever the outcomes say, each judged by its token alone; renews.

KEYS[1]  {app:topic}:jobs          HASH    job id -> record
KEYS[2]  {app:topic}:delayed       ZSET    job id scored by due time, ms
KEYS[3]  {app:topic}:unacked       ZSET    job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET    job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done          ZSET    job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:broadcasts       ZSET    broadcast id scored by due time, ms
KEYS[7]  {app:topic}:broadcast-jobs     HASH    broadcast id -> record
KEYS[8]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[9]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[10] {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[11] {app:topic}:pending       HASH    job id -> pending
KEYS[12] {app:topic}:crashes       HASH    job id -> crashes, `!` when isolated
KEYS[13] {app:topic}:meta          HASH    roles; retains: a job with a retention was added once
KEYS[14] {app:topic}:wake          CHANNEL of any node
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  lease, ms
ARGV[4]  n, the number of acks without a metadata
ARGV[5]  and on: n times id, token; then id, token, outcome, argument, metadata ('' = unchanged): see parts/leave.lua

Returns  {sequence, rows, numbers of the stale outcomes, numbers of those of whose job nothing is kept: its row is dropped}
Holds    an outcome whose token is not the job's row changes nothing; pending_commands are obeyed
Cost     acks: one field read and two removed a job; others O(log n) a job
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local running, leases, sequence_key, pending_commands, crashes, meta, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local node, last_seen, lease, acks = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include pending.lua
-- include leave.lua
-- include status.lua
local ids, at = {}, {}
for i = 1, acks do ids[i] = ARGV[3 + 2 * i] end
for i = 5 + 2 * acks, #ARGV, 5 do
  ids[#ids + 1] = ARGV[i]
  at[#ids] = i
end
local tokens, stale = read('HMGET', running, ids), {}
local mine, plain, dropped = {}, {}, {}
local rare = redis.call('EXISTS', pending_commands, crashes) > 0
local is_plain = not rare and not known[3]
for i = 1, acks do
  if tokens[i] ~= ARGV[4 + 2 * i] then
    stale[#stale + 1] = i
  elseif is_plain then
    plain[#plain + 1] = ids[i]
  else
    mine[#mine + 1] = i
  end
end
for i = acks + 1, #ids do
  if tokens[i] ~= ARGV[at[i] + 1] then stale[#stale + 1] = i else mine[#mine + 1] = i end
end
if #mine > 0 then
  wrong = wrong_type(true)
  if wrong then return wrong end
end
redis.call('HDEL', pending_commands, '')
write('HDEL', running, plain)
write('HDEL', jobs, plain)
if #mine > 0 then
  local named = {}
  for k, i in ipairs(mine) do named[k] = ids[i] end
  local records = read('HMGET', jobs, named)
  local pending_changed = rare and read('HMGET', pending_commands, named) or {}
  local lost = rare and read('HMGET', crashes, named) or {}
  local numbers = {}
  for k, i in ipairs(mine) do
    numbers[ids[i]] = i
    local how, argument, metadata = 'a', '', ''
    if i > acks then how, argument, metadata = ARGV[at[i] + 2], ARGV[at[i] + 3], ARGV[at[i] + 4] end
    leave(ids[i], tokens[i], records[k] or nil, pending_of(pending_changed[k]), lost[k], how, argument, metadata)
  end
  for n, id in ipairs(plan.lost) do
    dropped[n] = numbers[id]
    push(plan.gone, id)
  end
  finish()
end
local sequence, rows = lease_status()
return {sequence, rows, stale, dropped}

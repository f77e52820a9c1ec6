--[[ recover: puts jobs where their records say. One that has a record and no place is put back as at the end of a run: a pending command
takes effect; a job that was parked becomes UNACKED, and any other DEAD. One that is in several places keeps one. What names a job that has no
record goes. And a node has a lease exactly while it has rows. Or: makes a
job that no node can decode DEAD, with its payload.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:leases          ZSET     node -> end of its lease, ms
KEYS[9]  {app:topic}:pending         HASH     job id -> pending command
KEYS[10] {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[11] {app:topic}:meta            HASH     protocol, far-lost, watcher, publisher
KEYS[12] {app:topic}:wake            CHANNEL  signals for every node
KEYS[13] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[14] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[15] {app:topic}:far             ZSET     bounds of the leaves of jobs that are due much later
KEYS[16] {app:topic}:far-jobs        HASH     job id -> due time and record of such a job
KEYS[17] {app:topic}:far-leaves      HASH     bound -> ids of the leaf, as a list of MessagePack
KEYS[18] {app:topic}:schedules       ZSET     ids of schedules, all with score 0
KEYS[19] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[20] {app:topic}:history         HASH     job id -> history
KEYS[21] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[22] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[23] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[24] {app:topic}:running:NODE    HASH     job id -> token; and on: of each node in ARGV
ARGV[1]  the most bytes of replacements; one may have more
ARGV[2]  far-lost as it was before all far jobs were looked at, which had their leaves or are among the ids; otherwise ''
ARGV[3]  '', or the new metadata of a job that no node can decode: it becomes DEAD, unless it runs, is DONE or has another payload by now
ARGV[4]  its payload, as it was read; all of its record, if that does not decode
ARGV[5]  n: the number of nodes whose rows are in KEYS
ARGV[6]  and on: n nodes; then ids, at most 1000, or that of the job that no node can decode

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, ids with which something was wrong, how many of the ids
         were looked at, how many leases were set or removed}: at most 500 of the ids, from the first on, and as many as the bytes
         allow
Holds    rules 1, 2, 5, 8, 13: what is right by now is left as it is, so a repeat does nothing. It removes no record, but for a replacement
         of a job that was added again since; of a job with two records it keeps both
Cost     O(n (log n + nodes))
]]
-- include types.lua
local most, far_lost, undecodable, kept, nodes = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local NODES = {unpack(ARGV, 6, 5 + nodes)}
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include far.lua
-- include score.lua
-- include groups.lua
-- include near.lua
-- include recorder.lua
local node = ''
-- include leave.lua
-- include holders.lua
-- include letters.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
local ids = {unpack(ARGV, 6 + nodes)}
for i = math.min(fitting({KEYS.replacements}, ids, most), 500) + 1, #ids do ids[i] = nil end
local found, wrong, unplaced, leases_changed = letters_of(ids), {}, {}, 0
-- A server whose memory is full must refuse to change metadata, which it does only at the first write.
if undecodable ~= '' then redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL) end
redis.call('HDEL', KEYS.pending, '')
-- Takes the job out of its places, but for one if it keeps one: the row of the newest run, otherwise the place that every query names.
local function leave_places(id, keeps_one)
  local holder, newest, is_kept = nil, -1, not keeps_one
  for n = 1, #NODES do
    local token = keeps_one and redis.call('HGET', KEYS[FIRST + n - 1], id)
    local fence = token and (tonumber(string.match(token, '^(%d+):')) or 0)
    if fence and fence > newest then holder, newest, is_kept = n, fence, true end
  end
  for n = 1, #NODES do
    if n ~= holder then redis.call('HDEL', KEYS[FIRST + n - 1], id) end
  end
  for _, place in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do
    if is_kept then redis.call('ZREM', place, id) else is_kept = redis.call('ZSCORE', place, id) end
  end
end
-- An earlier job of this id left these, so they must not decide about a job that was added since.
local function remove_leftovers(id)
  for _, key in ipairs({KEYS.metadata, KEYS.pending, KEYS.crashes, KEYS.replacements}) do redis.call('HDEL', key, id) end
  leave_places(id, false)
end
-- Returns whether something was wrong with the job.
local function put_right(id, where)
  local function has(pattern) return string.find(where, pattern) end
  local later, places = has('w') and redis.call('HGET', KEYS.far_jobs, id), string.gsub(where, '[^duxfr]', '')
  local is_job, is_wrong = has('j'), false
  if later and #later < 6 then return false end
  if #places > 1 and is_job then
    leave_places(id, true)
    is_wrong = true
  elseif later and not is_job then
    if places ~= '' or has('[MPC]') then
      remove_leftovers(id)
      is_wrong = true
    end
    if not has('l') then
      bring_near({id}, {later})
      is_wrong = true
    end
  elseif is_job and places == '' and not later or not is_job and (places ~= '' or has('[MPC]')) then
    if not is_job then leave_places(id, false) end
    unplaced[#unplaced + 1], is_wrong = id, true
  end
  if (is_job or later) and string.sub(id, 1, 12) == 'dq:schedule:' and not has('s') then
    redis.call('ZADD', KEYS.schedules, 0, id)
    is_wrong = true
  end
  if has('g') then
    seating.shift(id, false)
    seating.join(id, metadata_of({id})[1], tonumber(redis.call('ZSCORE', KEYS.delayed, id)) % PRIORITY)
    is_wrong = true
  end
  if has('b') and not has('B') then
    redis.call('ZREM', KEYS.broadcasts, id)
    is_wrong = true
  end
  return is_wrong
end
local function ends_with(text, tail) return #tail <= #text and string.sub(text, #text - #tail + 1) == tail end
local function give_up(id, where)
  local later = string.find(where, 'w', 1, true) and redis.call('HGET', KEYS.far_jobs, id)
  local record = redis.call('HGET', KEYS.jobs, id) or later and record_in(later)
  if not record or not (later or string.find(where, '[dux]')) then return false end
  -- Metadata that override those of the record may be what does not decode; then what was read ends with the payload.
  if not ends_with(record, kept) and not ends_with(kept, string.sub(record, #metadata_in(record) + 1)) then return false end
  if later then bring_near({id}, {later}) end
  if has_groups then seating.leave(id, metadata_of({id})[1], tonumber(redis.call('ZSCORE', KEYS.delayed, id) or 0) % PRIORITY) end
  redis.call('HDEL', KEYS.crashes, id)
  redis.call('ZREM', KEYS.delayed, id)
  redis.call('ZREM', KEYS.unacked, id)
  redis.call('HSET', KEYS.metadata, id, undecodable)
  if not string.find(where, 'x', 1, true) then die(id, undecodable) end
  return true
end
for i, id in ipairs(ids) do
  local act = undecodable == '' and put_right or give_up
  if act(id, found[i]) then wrong[#wrong + 1] = id end
end
local texts = metadata_of(unplaced)
local commands, crash_texts = read('HMGET', KEYS.pending, unplaced), read('HMGET', KEYS.crashes, unplaced)
for i, id in ipairs(unplaced) do
  push(plan.removed_commands, id)
  leave(id, '0:0', texts[i], parse_command(commands[i]), crash_texts[i], 'l', '', '')
end
plan.removed_rows = {}
write_plan()
for n, name in ipairs(NODES) do
  local holds, has_lease = redis.call('HLEN', KEYS[FIRST + n - 1]) > 0, redis.call('ZSCORE', KEYS.leases, name)
  -- A node that lives renews it within a minute.
  if holds and not has_lease then leases_changed = leases_changed + redis.call('ZADD', KEYS.leases, int(floor + 60000), name) end
  if has_lease and not holds then leases_changed = leases_changed + redis.call('ZREM', KEYS.leases, name) end
end
if far_lost ~= '' and redis.call('HGET', KEYS.meta, 'far-lost') == far_lost then redis.call('HDEL', KEYS.meta, 'far-lost') end
keep_notes()
return {0, wrong, #ids, leases_changed}

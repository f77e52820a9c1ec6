--[[ command: applies delete, cancel, ack and requeue from outside, by id, in order.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:pending         HASH     job id -> pending command
KEYS[9]  {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[10] {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[11] {app:topic}:meta            HASH     protocol, watcher, events, history, taken
KEYS[12] {app:topic}:wake            CHANNEL  signals for every node
KEYS[13] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[14] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[15] {app:topic}:far             ZSET     bounds of the leaves of jobs that are due much later
KEYS[16] {app:topic}:far-jobs        HASH     job id -> due time and record of such a job
KEYS[17] {app:topic}:far-leaves      HASH     bound -> ids of the leaf, as a list of MessagePack
KEYS[18] {app:topic}:schedules       ZSET     ids of schedules
KEYS[19] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[20] {app:topic}:taken           ZSET     id that stays taken -> until when, ms, and half a ms more if its job was deleted
KEYS[21] {app:topic}:history         HASH     job id -> history
KEYS[22] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[23] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[24] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[25] {app:topic}:ticks           ZSET     id of a schedule -> when its next tick is, or an earlier time
ARGV[1]  number of the batch
ARGV[2]  and on: verb (d delete, c cancel, a ack, q requeue, p pass: the job gives its seat in its group back), id, fence or '', the version that the job must have or '', who sends it or ''
         (the producer)

Returns  {'done', answer, for each command false or {removed record, metadata that override its own, or ''}}, {'kept',
         answer} or {'late'}. The answer is `c` and two characters per command: the state in which the job was found
         (d r u x f, or - for none), and + if anything changed, v if the job has another version, which follows as the part `edit` tells it,
         otherwise -; `c*` and the characters of one command if all have the same. The removed records have at most 1 MiB; the
         first may have more, and later ones are left out
Holds    rules 1, 2, 5, 13, 15, 18, 19, 24, 28, 30: of a running job only the pending command changes
Cost     O(n log n)
]]
-- include types.lua
local number, renews, FIELDS, MAX_REMOVED = ARGV[1], true, 5, 1048576
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include edit.lua
-- include pending.lua
-- include places.lua
-- include calls.lua
-- include far.lua
-- include score.lua
-- include groups.lua
-- include near.lua
-- include recorder.lua
for i = 3, #ARGV, FIELDS do
  -- A key of a wrong type is found before the first write.
  if string.sub(ARGV[i], 1, 12) == 'dq:schedule:' then redis.call('ZCARD', KEYS.schedules) end
end
-- What the store knows of each id. The commands change it here, and the end of the script writes what has changed.
local by_id, in_order, ids = {}, {}, {}
for i = 2, #ARGV, FIELDS do
  local id = ARGV[i + 1]
  if not by_id[id] then
    ids[#ids + 1] = id
    by_id[id] = {id = id}
  end
end
if redis.call('EXISTS', KEYS.far_jobs) == 1 then bring_near(ids, read('HMGET', KEYS.far_jobs, ids)) end
local ends = (tonumber(taken_until) or 0) > floor and read('ZMSCORE', KEYS.taken, ids) or {}
local texts, commands = metadata_of(ids), read('HMGET', KEYS.pending, ids)
local broadcast_dues = read('ZMSCORE', KEYS.broadcasts, ids)
local recorded = {}
for i, id in ipairs(ids) do
  local job = by_id[id]
  job.text, job.command, job.broadcast = texts[i] or nil, parse_command(commands[i]), broadcast_dues[i] and true or false
  if job.text then recorded[#recorded + 1] = id end
  job.taken_until = ends[i] and tonumber(ends[i]) >= floor + 1 and tonumber(ends[i])
  in_order[i] = job
end
local places, times = places_of(recorded)
for i, id in ipairs(recorded) do
  local job = by_id[id]
  job.state, job.old_text, job.old_due = places[i], job.text, places[i] == 'd' and times[i] or nil
end
local function state_of(job)
  if job.broadcast and (not job.state or job.state == 'f') then return 'd' end
  return job.state
end
local function version_of(job, state)
  local text = job.text
  if not text or job.state == 'f' and state == 'd' then text = metadata_in(redis.call('HGET', KEYS.broadcast_jobs, job.id) or '') end
  return (change_facts(text))
end
-- What was removed: the key and field of its record, and the metadata that override those of the record.
local function remove(job)
  local removed = job.text and {KEYS.jobs, job.id, job.text}
  job.state, job.text, job.has_moved = nil, nil, true
  return removed
end
local function remove_broadcast(job)
  if not job.broadcast then return nil end
  job.broadcast, job.has_lost_broadcast = false, true
  return {KEYS.broadcast_jobs, job.id, ''}
end
-- An acked job is DONE for its retention, or gone. Returns what was removed.
local function finish_acked(job)
  local retain = field(job.text, FIELD.retain) or 0
  if retain == 0 then return remove(job) end
  job.state, job.at, job.has_moved = 'f', floor + retain, true
end
local function is_parked_by(job, fence)
  return fence == '' or (job.text and parking_fence_of(job.text)) == fence
end
local function set_command(job, command) job.command, job.has_new_command = command, true end
-- Signals go out at the end: a server that refuses writes still publishes, and a refused cancel must stop no handler.
local signals = {}
local function signal_command(verb, id) signals[#signals + 1] = 'command ' .. verb .. ' ' .. id end
local function delete(job, state, ending, verb)
  local broadcast = remove_broadcast(job)
  if state ~= 'r' then return true, remove(job) or broadcast end
  local old = job.command
  local is_new = not old or old.ending ~= ending or old.fence ~= '' or old.deliver ~= nil
  set_command(job, {ending = ending, fence = ''})
  signal_command(verb, job.id)
  return is_new or broadcast ~= nil
end
local function ack_run(job, fence)
  local command = job.command or {fence = ''}
  local applies = not command.ending
  if command.ending and command.fence ~= '' then applies = fence == '' or tonumber(fence) > tonumber(command.fence) end
  if not applies then return false end
  command.ending, command.fence = 'a', fence
  if fence == '' then
    command.conditional = false
    signal_command('ack', job.id)
  end
  set_command(job, command)
  return true
end
local function ack(job, state, fence)
  if state == 'd' and fence == '' then
    local broadcast = remove_broadcast(job)
    local removed = job.state == 'd' and finish_acked(job) or nil
    return true, removed or broadcast
  end
  if state == 'u' and is_parked_by(job, fence) then return true, finish_acked(job) end
  return state == 'r' and ack_run(job, fence)
end
local earliest
local function requeue(job, state, fence)
  if (state ~= 'x' and state ~= 'u') or not is_parked_by(job, fence) then return false end
  local text = with_metadata(state == 'x' and revived(job.text) or job.text, '', nil)
  job.has_new_text, job.text = job.has_new_text or text ~= job.text, text
  job.state, job.at, job.has_moved = 'd', floor, true
  earliest = floor
  return true
end
local answers, removed, removed_bytes, is_uniform = {}, {}, 0, true
for i = 2, #ARGV, FIELDS do
  local verb, job, fence, wanted = ARGV[i], by_id[ARGV[i + 1]], ARGV[i + 2], ARGV[i + 3]
  local state, has_changed, gone = state_of(job), false, nil
  local version = wanted ~= '' and state and version_of(job, state)
  local is_other = version and version ~= tonumber(wanted)
  if is_other then
    has_changed = false
  elseif state and verb == 'd' then
    has_changed, gone = delete(job, state, 'd', 'delete')
  elseif state and verb == 'c' then
    has_changed, gone = delete(job, state, 'c', 'cancel')
  elseif state and verb == 'a' then
    has_changed, gone = ack(job, state, fence)
  elseif state and verb == 'p' then
    has_changed = has_groups and state ~= 'r' and not job.has_passed and job.text and seating.has_seat(job.id, job.text) and true or false
    job.has_passed = has_changed or job.has_passed
  elseif state then
    has_changed = requeue(job, state, fence)
  end
  if has_changed and verb ~= 'p' then
    local kind = state == 'r' and 'w' .. verb or verb == 'a' and 'k' or verb == 'q' and 'q' or 'd'
    if verb == 'd' or verb == 'c' then job.is_deleted = true end
    note(kind, '', ARGV[i + 4] ~= '' and ARGV[i + 4] or string.match(KEYS.calls, ':calls:(.*)$'), job.id)
  end
  answers[#answers + 1] = (state or '-') .. (is_other and 'v' .. told(version) or has_changed and '+' or '-')
  is_uniform = is_uniform and answers[#answers] == answers[1]
  removed[#removed + 1] = false
  if gone then
    local first = removed_bytes == 0
    removed_bytes = removed_bytes + redis.call('HSTRLEN', gone[1], gone[2])
    if first or removed_bytes <= MAX_REMOVED then
      local record = redis.call('HGET', gone[1], gone[2])
      removed[#removed] = record and {record, gone[3]}
    end
  end
end
redis.call('HDEL', KEYS.pending, '')
local head = (earliest or has_groups) and head_of(KEYS.delayed)
local moved, removed_jobs, removed_broadcasts = {}, {}, {}
for _, job in ipairs(in_order) do
  if job.has_moved then moved[#moved + 1] = job.id end
  if job.has_moved and not job.state then removed_jobs[#removed_jobs + 1] = job.id end
  if has_groups and job.has_moved and job.old_text then
    local stays = job.state == 'd' and not job.has_passed and seating.has_seat(job.id, job.old_text)
    if not stays then seating.leave(job.id, job.old_text, job.old_due) end
    if job.state == 'd' and not stays then seating.join(job.id, job.old_text, job.at) end
  elseif job.has_passed then
    seating.free_seat(job.id, job.text)
    if job.state == 'd' then seating.join(job.id, job.text, job.old_due) end
  end
  if job.has_lost_broadcast then removed_broadcasts[#removed_broadcasts + 1] = job.id end
end
if #moved > 0 then
  for _, place in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do write('ZREM', place, moved) end
  write('HDEL', KEYS.crashes, moved)
  write('HDEL', KEYS.jobs, removed_jobs)
  write('HDEL', KEYS.metadata, removed_jobs)
  for _, id in ipairs(removed_jobs) do
    if string.sub(id, 1, 12) == 'dq:schedule:' then
      redis.call('ZREM', KEYS.schedules, id)
      redis.pcall('ZREM', KEYS.ticks, id)
    end
  end
end
write('ZREM', KEYS.broadcasts, removed_broadcasts)
write('HDEL', KEYS.broadcast_jobs, removed_broadcasts)
for _, job in ipairs(in_order) do
  if job.is_deleted and job.taken_until then
    redis.call('ZADD', KEYS.taken, string.format('%d.5', math.floor(job.taken_until)), job.id)
  end
  if job.has_new_text and job.state then redis.call('HSET', KEYS.metadata, job.id, job.text) end
  if job.has_moved and job.state == 'f' then redis.call('ZADD', KEYS.done, job.at, job.id) end
  if job.has_moved and job.state == 'd' then redis.call('ZADD', KEYS.delayed, score(job.at, job.text), job.id) end
  if job.has_new_command then
    redis.call('HSET', KEYS.pending, job.id, command_text(job.command))
    if not job.command.deliver then redis.call('HDEL', KEYS.replacements, job.id) end
  end
end
local answer = is_uniform and answers[1] and 'c*' .. answers[1] or 'c' .. table.concat(answers)
-- include keep.lua
keep_notes()
for _, text in ipairs(signals) do publish(KEYS.wake, text) end
if has_groups then earliest = seating.regroup() end
signal_earlier('d', head, earliest)
return {'done', answer, removed}

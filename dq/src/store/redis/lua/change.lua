--[[ change: gives jobs that are there another due time, payload or options, by id, in order.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[9]  {app:topic}:meta            HASH     protocol, largest, watcher, publisher, events, history
KEYS[10] {app:topic}:wake            CHANNEL  signals for every node
KEYS[11] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[12] {app:topic}:far             ZSET     bounds of the leaves of jobs that are due much later
KEYS[13] {app:topic}:far-jobs        HASH     job id -> due time and record of such a job
KEYS[14] {app:topic}:far-leaves      HASH     bound -> ids of the leaf, as a list of MessagePack
KEYS[15] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[16] {app:topic}:history         HASH     job id -> history
KEYS[17] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[18] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[19] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[20] {app:topic}:ticks           ZSET     id of a schedule -> when its next tick is, or an earlier time
ARGV[1]  number of the batch
ARGV[2]  letters: u if a change of the batch is an update or of options, r if one brings a retention
ARGV[3]  and on: verb, id, the version that the job must have or '', who sends it or '' (the producer), and what
         the verb needs: r (reschedule) +µs, ~µs or @ms, e (extend) ms,
         n (run now) nothing, u (update) codec and payload, o (options) which change (r retry, h headers, k retention), a colon and
         metadata that have them

Returns  {'done', answer}, {'kept', answer} or {'late'}. The answer is `g`, and per change two characters and a text: the state in which
         the job was found (d r u x f, or - for none); + (changed), - (no such job, or none in this state can be changed so), v (it has
         another version), m (its version cannot grow) or l (too many bytes of broadcasts: in another batch); and version and due time
         as the part `edit` tells them
Holds    rules 1, 2, 4, 5, 18, 23, 24, 28: a job without a place counts as RUNNING, and only a job that is changed comes near
Cost     O(n log n). Per job one HMGET field, four ZMSCORE members, one HSET field and one ZADD member; per broadcast one HGET more
]]
local number, renews, FIRST_CHANGE, FIELDS, MAX_READ = ARGV[1], true, 3, 5, 1048576
-- include version.lua
-- include clock.lua
-- include calls.lua
-- include bulk.lua
-- include far.lua
-- include metadata.lua
-- include score.lua
-- include groups.lua
-- include near.lua
-- include signal.lua
-- include overrides.lua
-- include places.lua
-- include edit.lua
-- include recorder.lua
-- include options.lua
-- What the store knows of each id. The changes are made here, and the end of the script writes them.
local by_id, in_order, ids = {}, {}, {}
for i = FIRST_CHANGE, #ARGV, FIELDS do
  local id = ARGV[i + 1]
  if not by_id[id] then
    ids[#ids + 1] = id
    by_id[id] = {id = id}
    in_order[#ids] = by_id[id]
  end
end
local far_values = redis.call('EXISTS', KEYS.far_jobs) == 1 and read('HMGET', KEYS.far_jobs, ids) or {}
local texts, broadcast_dues = metadata_of(ids), read('ZMSCORE', KEYS.broadcasts, ids)
local recorded, read_bytes = {}, 0
for i, job in ipairs(in_order) do
  if texts[i] then
    recorded[#recorded + 1] = job.id
    job.queued = {text = texts[i]}
  elseif far_values[i] then
    job.queued = {text = metadata_in(record_in(far_values[i])), state = 'd', due = due_in(far_values[i]), old_due = due_in(far_values[i]), far = far_values[i]}
  end
  if broadcast_dues[i] then
    local is_first = read_bytes == 0
    read_bytes = read_bytes + redis.call('HSTRLEN', KEYS.broadcast_jobs, job.id)
    if is_first or read_bytes <= MAX_READ then
      local record = redis.call('HGET', KEYS.broadcast_jobs, job.id) or ''
      local text = metadata_in(record)
      job.broadcast = {text = text, due = tonumber(broadcast_dues[i]), payload = payload_of(record, text)}
    else
      job.is_left_out = true
    end
  end
end
local places, times = places_of(recorded)
for i, id in ipairs(recorded) do
  local queued = by_id[id].queued
  queued.state, queued.due = places[i], places[i] == 'd' and times[i] or nil
  queued.old_due = queued.due
end
-- The state in which a job is found, and the part that says its version and due time.
local function find(job)
  local queued = job.queued
  if queued and queued.state ~= 'f' then return queued.state, queued end
  if job.broadcast or job.is_left_out then return 'd', job.broadcast end
  return queued and queued.state, queued
end
local function new_due(verb, argument, due)
  if verb == 'r' then
    local time = tonumber(string.sub(argument, 2))
    return math.min(string.sub(argument, 1, 1) ~= '@' and after(time) or math.max(time, floor), LATEST_DUE)
  end
  return verb == 'e' and math.min(due + argument, LATEST_DUE) or math.min(due, floor)
end
local function edit(part, verb, argument, version)
  local _, first = change_facts(part.text)
  local due = part.due
  if due and verb ~= 'u' and verb ~= 'o' then due = new_due(verb, argument, due) end
  part.text = edited(part.text, version, first, due and due - part.due or 0)
  part.due, part.is_changed = due, true
  if verb == 'o' then part.text = with_options(part.text, argument) end
  if verb == 'u' then part.payload, part.is_updated = argument, true end
end
local function change(job, state, part, verb, wanted, argument)
  if job.is_left_out then return 'l', 0 end
  if not part then return '-', 0 end
  local version = change_facts(part.text)
  if state ~= 'd' and not ((verb == 'u' or verb == 'o') and (state == 'u' or state == 'x')) then return '-', version end
  if wanted ~= '' and tonumber(wanted) ~= version then return 'v', version end
  if version == LAST_VERSION then return 'm', version end
  if job.queued and job.queued.state ~= 'f' then edit(job.queued, verb, argument, version + 1) end
  if job.broadcast then edit(job.broadcast, verb, argument, version + 1) end
  return '+', version + 1
end
local answers = {}
for i = FIRST_CHANGE, #ARGV, FIELDS do
  local job = by_id[ARGV[i + 1]]
  local state, part = find(job)
  local verdict, version = change(job, state, part, ARGV[i], ARGV[i + 2], ARGV[i + 4])
  local due = verdict ~= 'l' and part and part.due
  if verdict == '+' then
    note('s', due and int(due) or '', ARGV[i + 3] ~= '' and ARGV[i + 3] or string.match(KEYS.calls, ':calls:(.*)$'), job.id)
  end
  answers[#answers + 1] = (state or '-') .. verdict .. told(version, due)
end
-- What is written: members are time and id, fields are id and value.
local near_ids, near_values, job_fields, metadata_fields, removed_metadata, members = {}, {}, {}, {}, {}, {}
local broadcast_fields, broadcast_members, grouped_ids = {}, {}, {}
local earliest, earliest_broadcast, longest, tick = math.huge, math.huge, 0, nil
local function write_queued(id, queued)
  if queued.far then near_ids[#near_ids + 1], near_values[#near_values + 1] = id, queued.far end
  local own = queued.text
  if queued.is_updated then
    local record = queued.text .. queued.payload
    push(job_fields, id, record)
    longest, own = math.max(longest, #record), own_metadata(record)
  end
  if own then push(metadata_fields, id, own) else removed_metadata[#removed_metadata + 1] = id end
  if queued.due then
    push(members, score(queued.due, queued.text), id)
    earliest = math.min(earliest, queued.due)
    if string.sub(id, 1, 12) == 'dq:schedule:' then
      redis.pcall('ZADD', KEYS.ticks, int(queued.due), id)
      tick = math.min(tick or queued.due, queued.due)
    end
    if has_groups and not seating.has_seat(id, queued.text) then
      grouped_ids[#grouped_ids + 1] = {id, queued}
    end
  end
end
for _, job in ipairs(in_order) do
  if job.queued and job.queued.is_changed then write_queued(job.id, job.queued) end
  if job.broadcast and job.broadcast.is_changed then
    push(broadcast_fields, job.id, job.broadcast.text .. job.broadcast.payload)
    push(broadcast_members, int(job.broadcast.due), job.id)
    earliest_broadcast = math.min(earliest_broadcast, job.broadcast.due)
  end
end
-- A server whose memory is full refuses a larger payload, but another due time needs no room.
if ARGV[2] ~= '' then redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL) else redis.call('HDEL', KEYS.metadata, '') end
bring_near(near_ids, near_values)
local head, broadcast_head = head_of(KEYS.delayed), head_of(KEYS.broadcasts)
write('HSET', KEYS.jobs, job_fields)
write('HDEL', KEYS.metadata, removed_metadata)
write('HSET', KEYS.metadata, metadata_fields)
write('ZADD', KEYS.delayed, members)
write('HSET', KEYS.broadcast_jobs, broadcast_fields)
write('ZADD', KEYS.broadcasts, broadcast_members)
if longest > (tonumber(largest or '') or 0) then redis.call('HSET', KEYS.meta, 'largest', longest) end
if not has_retains and string.find(ARGV[2], 'r', 1, true) then redis.call('HSET', KEYS.meta, 'retains', 1) end
local answer = 'g' .. table.concat(answers)
-- include keep.lua
keep_notes()
if has_groups then
  for _, job in ipairs(grouped_ids) do
    seating.leave(job[1], job[2].text, job[2].old_due)
    seating.join(job[1], job[2].text, job[2].due)
  end
  earliest = seating.regroup()
end
signal_earlier('d', head, earliest, tick)
signal_earlier('b', broadcast_head, earliest_broadcast)
return {'done', answer}

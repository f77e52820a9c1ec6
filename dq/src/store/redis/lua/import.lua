--[[ import: puts copies of jobs, from an export, into their places.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[9]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[10] {app:topic}:meta            HASH     protocol, fence, retains, largest, watcher, publisher, draining, waiting, group_waiting, rate, group_rate, rates
KEYS[11] {app:topic}:wake            CHANNEL  signals for every node
KEYS[12] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[13] {app:topic}:far             ZSET     bounds of the leaves of jobs that are due much later
KEYS[14] {app:topic}:far-jobs        HASH     job id -> due time and record of such a job
KEYS[15] {app:topic}:far-leaves      HASH     bound -> ids of the leaf, as a list of MessagePack
KEYS[16] {app:topic}:schedules       ZSET     ids of schedules
KEYS[17] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[18] {app:topic}:taken           ZSET     id that stays taken -> until when, ms, and half a ms more if its job was deleted
KEYS[19] {app:topic}:history         HASH     job id -> history
KEYS[20] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[21] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[22] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[23] {app:topic}:ticks           ZSET     id of a schedule -> when its next tick is, or an earlier time
ARGV[1]  number of the batch
ARGV[2]  r (reject: all or nothing), k (keep) or p (replace)
ARGV[3]  letters: r if a copy has a retention, p if one has another priority than the normal one, h if one is a schedule, u if the id of one is taken, y if one has a weight
ARGV[4]  no record of the batch has more bytes
ARGV[5]  the fence which no later run may get
ARGV[6]  the highest order in a group of these copies
ARGV[7]  and on: for each copy, no id twice among the jobs and none twice among the broadcasts, its place (d u x f, or b: a
         broadcast), id, time in ms, crashes, record, and until when its id is taken in ms, or nothing

Returns  {'done', answer}, {'kept', answer} or {'late'}. The answer is `i` and one letter per copy: A (added); d r u x f (exists, and
         its state); D U X F (replaced, and the state of the old job); - (not done, because another one exists)
         Errors, after it has done nothing: `DQDRAINING` and the field of meta, if the topic drains; `DQAHEAD`, `fence` or `order`, that number and the
         clock in µs, if it is more than a day ahead; `DQFULL`, how many wait, how many may, and the
         group that is full, if it is one; and, if a copy would wait that is heavier than all that a rate allows in a period, `DQHEAVY`, the rate as
         `meta` has it, the weight, the group whose rate it is or nothing, a tab and its id
Holds    rules 1, 2, 5, 18, 23, 27, 29, 30: an id in no place is RUNNING, and untouched
Cost     O(n log n). Per copy of a job one HEXISTS, one HSET field and one ZADD member
]]
-- include types.lua
local number, duplicate, flags, longest, fence, renews = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], true
local FIRST_COPY, FIELDS = 7, 6
-- include version.lua
-- include clock.lua
-- include calls.lua
if draining then return redis.error_reply('DQDRAINING ' .. draining) end
local has_schedules = string.find(flags, 'h', 1, true)
-- A key of a wrong type is found before the first write.
if has_schedules then redis.call('ZCARD', KEYS.schedules) end
local takes_ids = string.find(flags, 'u', 1, true)
if takes_ids then redis.call('ZCARD', KEYS.taken) end
-- include bulk.lua
-- include far.lua
-- include metadata.lua
-- include score.lua
-- include overrides.lua
-- include groups.lua
-- include near.lua
-- include recorder.lua
-- include signal.lua
-- include places.lua
-- Numbers that are more than a day ahead (rules 9, 27).
for _, number in ipairs({{'fence', fence}, {'order', ARGV[6]}}) do
  if tonumber(number[2]) > micros + 86400000000 then return redis.error_reply('DQAHEAD ' .. table.concat(number, ' ') .. ' ' .. int(micros)) end
end
-- What the store knows of these ids.
local recorded, broadcast_ids, states, waits = {}, {}, {}, {}
if redis.call('EXISTS', KEYS.far_jobs) == 1 then
  local ids = {}
  for i = FIRST_COPY, #ARGV, FIELDS do
    if ARGV[i] ~= 'b' then ids[#ids + 1] = ARGV[i + 1] end
  end
  local values = read('HMGET', KEYS.far_jobs, ids)
  -- A server whose memory is full must refuse an import, and to bring jobs near begins with a removal.
  redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL)
  bring_near(ids, values)
end
for i = FIRST_COPY, #ARGV, FIELDS do
  if ARGV[i] == 'b' then
    broadcast_ids[#broadcast_ids + 1] = ARGV[i + 1]
  elseif redis.call('HEXISTS', KEYS.jobs, ARGV[i + 1]) == 1 then
    recorded[#recorded + 1] = ARGV[i + 1]
  end
end
local places, times = places_of(recorded)
for i, state in ipairs(places) do states[recorded[i]] = state end
local is_grouped = string.find(flags, 'g', 1, true)
if is_grouped then
  has_groups, priorities = has_groups or int(micros), priorities or 1
end
local old = {}
for i, text in ipairs(has_groups and metadata_of(recorded) or {}) do
  old[recorded[i]] = {text = text, due = places[i] == 'd' and times[i] or nil}
end
local dues = read('ZMSCORE', KEYS.broadcasts, broadcast_ids)
for i, id in ipairs(broadcast_ids) do waits[id] = dues[i] and 'd' end
local answers, is_refused = {}, false
for i = FIRST_COPY, #ARGV, FIELDS do
  local state = ARGV[i] == 'b' and waits[ARGV[i + 1]] or ARGV[i] ~= 'b' and states[ARGV[i + 1]]
  local replaces = state and state ~= 'r' and duplicate == 'p'
  is_refused = is_refused or duplicate == 'r' and state
  answers[#answers + 1] = replaces and string.upper(state) or state or 'A'
end
if string.find(flags, 'y', 1, true) and not is_refused then
  -- include weight.lua
  -- include heavy.lua
  for i, letter in ipairs(answers) do
    local at = FIRST_COPY + (i - 1) * FIELDS
    local comes = letter == string.upper(letter) and ARGV[at] == 'd' and string.sub(ARGV[at + 1], 1, 12) ~= 'dq:schedule:'
    local answer = comes and too_heavy(ARGV[at + 4])
    if answer then
      local group = string.sub(answer, 1, 1) == 'J' and seating.group_of(ARGV[at + 4]) or ''
      return redis.error_reply('DQHEAVY ' .. string.sub(answer, 2, -2) .. ' ' .. int(weight_in(ARGV[at + 4])) .. ' ' .. group .. '\t' .. ARGV[at + 1])
    end
  end
end
if (waiting or group_waiting) and not is_refused then
  -- Copies of jobs that wait and did not before; a schedule is none.
  local waits, new = redis.call('ZCARD', KEYS.delayed) + redis.call('HLEN', KEYS.far_jobs), 0
  local most, most_of_group = tonumber(string.match(waiting or '', '^%d+:(%d+):') or nil), tonumber(string.match(group_waiting or '', '^%d+:(%d+):') or nil)
  local waits_in, new_in, full_group = {}, {}, nil
  for i, letter in ipairs(answers) do
    local at = FIRST_COPY + (i - 1) * FIELDS
    if letter == 'A' and ARGV[at] == 'd' and string.sub(ARGV[at + 1], 1, 12) ~= 'dq:schedule:' then
      new = new + 1
      local name = most_of_group and seating.group_of(ARGV[at + 4])
      if name then
        waits_in[name] = waits_in[name] or redis.call('ZLEXCOUNT', KEYS.grouped, '[' .. name .. '\0w', '(' .. name .. '\0x')
        new_in[name] = (new_in[name] or 0) + 1
        if waits_in[name] + new_in[name] > most_of_group then full_group = full_group or name end
      end
    end
  end
  if most and new > 0 and waits + new > most then return redis.error_reply('DQFULL ' .. int(waits) .. ' ' .. int(most)) end
  if full_group then return redis.error_reply('DQFULL ' .. int(waits_in[full_group]) .. ' ' .. int(most_of_group) .. ' ' .. full_group) end
end
if is_refused then
  for i, letter in ipairs(answers) do answers[i] = letter == 'A' and '-' or letter end
end
-- What is written: members are time and id, fields are id and value.
local keys = {d = KEYS.delayed, u = KEYS.unacked, x = KEYS.dead, f = KEYS.done, b = KEYS.broadcasts}
local members = {d = {}, u = {}, x = {}, f = {}, b = {}}
local moved, job_fields, broadcast_fields, crash_fields, own_fields = {}, {}, {}, {}, {}
local earliest, tick = {d = math.huge, b = math.huge}, nil
local taking = {members = {}, last = tonumber(taken_until or 0) or 0}
local function take(id, until_ms)
  local old = math.floor(tonumber(redis.call('ZSCORE', KEYS.taken, id) or 0))
  until_ms = math.max(tonumber(until_ms), old)
  if until_ms <= floor then return end
  push(taking.members, int(until_ms), id)
  taking.last = math.max(taking.last, until_ms)
end
local function put(place, id, at, crash_count, record)
  push(members[place], place == 'd' and score(tonumber(at), record) or at, id)
  if earliest[place] and tonumber(at) < earliest[place] then earliest[place] = tonumber(at) end
  if place == 'b' then return push(broadcast_fields, id, record) end
  if states[id] then moved[#moved + 1] = id end
  if old[id] then seating.leave(id, old[id].text, old[id].due) end
  if has_groups and place == 'd' then seating.join(id, record, tonumber(at)) end
  push(job_fields, id, record)
  if has_schedules and string.sub(id, 1, 12) == 'dq:schedule:' then
    redis.call('ZADD', KEYS.schedules, 0, id)
    if place == 'd' then
      redis.pcall('ZADD', KEYS.ticks, at, id)
      tick = math.min(tick or math.huge, tonumber(at))
    end
  end
  if crash_count ~= '0' then push(crash_fields, id, crash_count) end
  local own = own_metadata(record)
  if own then push(own_fields, id, own) end
end
for i = FIRST_COPY, #ARGV, FIELDS do
  local letter = answers[(i - FIRST_COPY) / FIELDS + 1]
  if letter ~= '-' and letter == string.upper(letter) then
    note('i' .. (ARGV[i] == 'b' and 'd' or ARGV[i]), '', '', ARGV[i + 1])
    put(unpack(ARGV, i, i + 4))
    if ARGV[i + 5] ~= '' then take(ARGV[i + 1], ARGV[i + 5]) end
  end
end
for _, place in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do write('ZREM', place, moved) end
write('HDEL', KEYS.crashes, moved)
write('HDEL', KEYS.metadata, moved)
local head, broadcast_head = head_of(KEYS.delayed), head_of(KEYS.broadcasts)
write('HSET', KEYS.jobs, job_fields)
write('HSET', KEYS.metadata, own_fields)
write('HSET', KEYS.crashes, crash_fields)
write('HSET', KEYS.broadcast_jobs, broadcast_fields)
for place, list in pairs(members) do write('ZADD', keys[place], list) end
if #taking.members > 0 then
  -- include take.lua
end
if not is_refused then
  if tonumber(fence) > (tonumber(last_fence or 0) or 0) then redis.call('HSET', KEYS.meta, 'fence', fence) end
  -- include note.lua
end
local answer = 'i' .. table.concat(answers)
-- include keep.lua
keep_notes()
if is_grouped and not is_refused then redis.call('HSET', KEYS.meta, 'groups', has_groups, 'priorities', 1) end
if has_groups then earliest.d = seating.regroup() end
signal_earlier('d', head, earliest.d, tick)
signal_earlier('b', broadcast_head, earliest.b)
return {'done', answer}

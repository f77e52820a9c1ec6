--[[ special: a batch of new jobs whose ids may be taken, or which are large, are for a broadcast, have an expiry, extend, take their ids for a time, are members of a job set, or are schedules.

Needs    what `add` has: its keys and arguments, chosen, clock, version, calls
Returns  the answer of the step
Holds    what `add` holds
Cost     O(n log n)
]]
-- include types.lua
local is_grouped = flags ~= '' and string.find(flags, 'g', 1, true)
if is_grouped then
  has_groups, priorities = math.max(tonumber(has_groups or 0) or 0, micros - 1), priorities or 1
end
local has_schedules = flags ~= '' and string.find(flags, 'h', 1, true)
-- A key of a wrong type is found before the first write.
if has_schedules then redis.call('ZCARD', KEYS.schedules) end
if flags ~= '' and string.find(flags, 'u', 1, true) then redis.call('ZCARD', KEYS.taken) end
-- include bulk.lua
-- include far.lua
-- include put_far.lua
-- include metadata.lua
-- include score.lua
-- include groups.lua
if bound then
  -- rare group_waiting.lua
end
-- include near.lua
-- include signal.lua
-- include overrides.lua
-- include edit.lua
-- include pending.lua
-- include places.lua
local function parse(text)
  local duplicate, deliver, kind, time, expiry, most, unique = string.match(text, '^([grkpe])([qbt])([+@~])(%d+),?(%d*);?(%d*)!?(%d*)$')
  local due = kind ~= '@' and after(time) or math.max(tonumber(time), floor)
  local options = {duplicate = duplicate, deliver = deliver, due = due, due_text = int(due), far_ids = {}}
  options.most, options.unique = tonumber(most), tonumber(unique)
  if expiry ~= '' then options.expires = math.max(1, math.min(due + expiry, 281474976710655)) end
  return options
end
-- Until when the ids that callers chose are taken, what is to be written of that, and until when any id is taken at most.
-- And when schedules are due.
local taking = {ends = {}, members = {}, ticks = {}, last = tonumber(taken_until or 0)}
for i, score in ipairs(chosen and taken_until and read('ZMSCORE', KEYS.taken, chosen) or {}) do
  if score and tonumber(score) >= floor + 1 then taking.ends[chosen[i]] = tonumber(score) end
end
-- What the store knows of the ids that callers chose.
local has_extensions = flags ~= '' and string.find(flags, 'e', 1, true)
local states, commands, broadcast_dues = {}, {}, {}
local dues, texts = {}, {}
-- Lua has 200 local variables, and nothing behind this needs these.
do
  local NODES = {unpack(ARGV, 6 + 2 * groups, FIRST_JOB - 1)}
  -- include holders.lua
  -- Which of these ids no node in NODES has a row of.
  local function without_row(ids)
    for n = 1, #NODES do
      local tokens, left = read('HMGET', KEYS[FIRST + n - 1], ids), {}
      for i, id in ipairs(ids) do
        if not tokens[i] then left[#left + 1] = id end
      end
      ids = left
    end
    return ids
  end
  -- Which of these ids have a record. Where records may be large, it asks id by id and reads none.
  local function recorded_of(ids)
    local recorded, records = {}, (tonumber(largest or '') or math.huge) * #ids <= MAX_READ and read('HMGET', KEYS.jobs, ids)
    for i, id in ipairs(ids) do
      if records and records[i] or not records and redis.call('HEXISTS', KEYS.jobs, id) == 1 then recorded[#recorded + 1] = id end
    end
    return recorded
  end
  if chosen and redis.call('EXISTS', KEYS.far_jobs) == 1 then
    local values, replaced, at = read('HMGET', KEYS.far_jobs, chosen), {}, 0
    for i = 6, 4 + 2 * groups, 2 do
      local duplicate = string.byte(ARGV[i])
      for _ = 1, duplicate ~= GENERATED and ARGV[i + 1] or 0 do
        at = at + 1
        if duplicate == REPLACE or duplicate == EXTEND then replaced[at] = values[at] elseif values[at] then states[chosen[at]] = 'd' end
      end
    end
    if next(replaced) then
      -- A server whose memory is full must refuse an add, and to bring jobs near begins with a removal.
      redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL)
      bring_near(chosen, replaced)
    end
  end
  if chosen then
    local recorded = recorded_of(chosen)
    if #recorded > 0 then
      local places, times = places_of(recorded)
      local pending_texts, unplaced = read('HMGET', KEYS.pending, recorded), {}
      for i, id in ipairs(recorded) do
        states[id], dues[id], commands[id] = places[i], times[i], parse_command(pending_texts[i])
        if places[i] == 'r' then unplaced[#unplaced + 1] = id end
      end
      local holders = #unplaced > 0 and unnamed_holders()
      if holders then return {'again', holders} end
      -- A job without a place and without a row does not exist any more, unless a replacement waits for its id: the audit puts
      -- that in its place.
      for _, id in ipairs(without_row(unplaced)) do
        if not (commands[id] and commands[id].deliver) then states[id] = 'f' end
      end
    end
    if redis.call('EXISTS', KEYS.broadcasts) == 1 then
      local times = read('ZMSCORE', KEYS.broadcasts, chosen)
      for i, id in ipairs(chosen) do broadcast_dues[id] = times[i] end
    end
    if has_extensions or has_groups then
      for i, text in ipairs(metadata_of(recorded)) do texts[recorded[i]] = text end
    end
  end
end
-- What is written at the end: members are due time and id, fields are id and value.
local delayed_members, job_fields, broadcast_members, broadcast_fields, pending_fields = {}, {}, {}, {}, {}
local replacement_fields = {}
local moved, removed_jobs, removed_broadcasts = {}, {}, {}
local earliest, earliest_broadcast = math.huge, math.huge
local far_from = flags ~= '' and string.find(flags, 'f', 1, true) and floor + FAR or math.huge
local far_fields, far_groups, earliest_far = {}, {}, math.huge
local function put(id, options, record)
  if has_schedules and options.deliver == 'q' and string.sub(id, 1, 12) == 'dq:schedule:' then taking.ticks[id] = options.due end
  local waited, waits = states[id] == 'd', options.deliver ~= 'b'
  if bound and waited ~= waits then bound.count(waits and 1 or -1) end
  if bound and has_groups then
    if waited and texts[id] and not seating.has_seat(id, texts[id]) then bound.count_in(texts[id], -1) end
    if waits then bound.count_in(record, 1) end
  end
  if states[id] then moved[#moved + 1] = id end
  if has_groups and texts[id] then seating.leave(id, texts[id], states[id] == 'd' and dues[id] or nil) end
  if options.deliver ~= 'q' then
    push(broadcast_members, options.due_text, id)
    push(broadcast_fields, id, record)
    if options.due < earliest_broadcast then earliest_broadcast = options.due end
  elseif broadcast_dues[id] then
    removed_broadcasts[#removed_broadcasts + 1] = id
  end
  local waits_near = bound and bound.of_groups[options.at] and seating.group_of(record, id)
  if options.deliver == 'q' and options.due >= far_from and not waits_near then
    if states[id] then removed_jobs[#removed_jobs + 1] = id end
    push(far_fields, id, struct.pack('<I6', options.due) .. record)
    options.far_ids[#options.far_ids + 1] = id
    if options.due < earliest_far then earliest_far = options.due end
  elseif options.deliver ~= 'b' then
    push(delayed_members, score(options.due, record), id)
    push(job_fields, id, record)
    if has_groups then seating.join(id, record, options.due) end
    if options.due < earliest then earliest = options.due end
  elseif states[id] then
    removed_jobs[#removed_jobs + 1] = id
  end
end
-- The id is RUNNING. Under an unfenced end it counts as absent; a replacement that waits there makes it known again.
local function put_replacement(id, options, record)
  local command = commands[id]
  local has_end = command and command.ending
  local is_absent = has_end and command.fence == ''
  local answer = 'W'
  if options.duplicate ~= 'p' and options.duplicate ~= 'e' then
    if is_absent and broadcast_dues[id] then return 'd' end
    local is_free = has_end and not command.deliver
    if not (is_free and (is_absent or options.duplicate == 'k')) then return 'r' end
    if not is_absent then answer = 'I' end
  end
  local too_heavy = heavy and heavy(id, options, record)
  if too_heavy then return too_heavy end
  local text = command_text({
    ending = command and command.ending, fence = command and command.fence or '',
    conditional = answer == 'I', deliver = options.deliver, due = options.due,
  })
  push(pending_fields, id, text)
  push(replacement_fields, id, record)
  return answer
end
-- include recorder.lua
-- include extend.lua
local function add(id, options, record)
  local own_fields = {[FIELD.expires_at] = options.expires}
  if is_grouped and seating.group_of(record) then
    has_groups = has_groups + 1
    own_fields[FIELD.group_order] = has_groups
  end
  if next(own_fields) then record = stamped(record, own_fields) end
  local state = states[id]
  if (not state or state == 'f') and broadcast_dues[id] then state = 'd' end
  if taking.ends[id] and (options.duplicate == 'r' or options.duplicate == 'k') then
    return state and state ~= 'f' and state or taking.ends[id] % 1 > 0 and 'z' or 'f'
  end
  if options.duplicate == 'e' then
    local answer = (state == 'd' or state == 'r') and extend(id, options, record)
    if answer then return answer end
    local text = metadata_in(record)
    record = edited(text, 0, floor, 0) .. payload_of(record, text)
    longest = math.max(longest, #record)
  end
  if state == 'r' then return put_replacement(id, options, record) end
  local exists = state and state ~= 'f'
  if exists and options.duplicate ~= 'p' then return state end
  local passes = exists or options.deliver == 'b' or string.sub(id, 1, 12) == 'dq:schedule:'
  local refusal = heavy and heavy(id, options, record)
    or bound and not passes and (bound.full(options.at) or bound.full_group(options.at, record))
  if refusal then return refusal end
  put(id, options, record)
  return exists and string.upper(state) or 'A'
end
-- A job with this id was added. The time of an earlier add still holds.
function taking.take(id, unique)
  local old, members = taking.ends[id], taking.members
  local until_ms = math.max(old and math.floor(old) or 0, unique and after(unique * 1000) or 0)
  if until_ms > 0 and until_ms ~= old then
    push(members, int(until_ms), id)
    taking.last = math.max(taking.last, until_ms)
  end
end
local answers, all_added, at = {}, true, FIRST_JOB
for i = 6, 4 + 2 * groups, 2 do
  local options = parse(ARGV[i])
  options.at, far_groups[#far_groups + 1] = i, options
  for _ = 1, ARGV[i + 1] do
    local answer = add(ARGV[at], options, ARGV[at + 1])
    answers[#answers + 1] = answer
    local first = string.sub(answer, 1, 1)
    if first == 'E' then
      note('s', int(extended_due), string.match(KEYS.calls, ':calls:(.*)$'), ARGV[at])
    elseif first == 'W' or first == 'I' then
      note('v', '', '', ARGV[at])
    elseif string.find(first, '[ADUX]') then
      note('a', options.due_text, '', ARGV[at])
    end
    if string.find(first, '[ADUXWIE]') then taking.take(ARGV[at], options.unique) end
    all_added, at = all_added and answer == 'A', at + 2
  end
end
if #moved > 0 then
  for _, place in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do write('ZREM', place, moved) end
  write('HDEL', KEYS.crashes, moved)
  write('HDEL', KEYS.pending, moved)
  write('HDEL', KEYS.replacements, moved)
  write('HDEL', KEYS.jobs, removed_jobs)
  write('HDEL', KEYS.metadata, moved)
end
if #removed_broadcasts > 0 then
  write('ZREM', KEYS.broadcasts, removed_broadcasts)
  write('HDEL', KEYS.broadcast_jobs, removed_broadcasts)
end
local head = head_of(KEYS.delayed)
write('HSET', KEYS.far_jobs, far_fields)
for _, options in ipairs(far_groups) do put_far(options.due, options.far_ids) end
write('HSET', KEYS.jobs, job_fields)
write('HDEL', KEYS.metadata, extended)
write('ZADD', KEYS.delayed, delayed_members)
if longest > LARGE then
  local own_fields = {}
  for i = 1, #job_fields, 2 do
    local own = own_metadata(job_fields[i + 1])
    if own then push(own_fields, job_fields[i], own) end
  end
  write('HSET', KEYS.metadata, own_fields)
end
if #broadcast_members > 0 then
  local broadcast_head = head_of(KEYS.broadcasts)
  write('HSET', KEYS.broadcast_jobs, broadcast_fields)
  write('ZADD', KEYS.broadcasts, broadcast_members)
  signal_earlier('b', broadcast_head, earliest_broadcast)
end
write('HSET', KEYS.pending, pending_fields)
write('HSET', KEYS.replacements, replacement_fields)
if has_schedules then
  for job = FIRST_JOB, #ARGV, 2 do
    if string.sub(ARGV[job], 1, 12) == 'dq:schedule:' then redis.call('ZADD', KEYS.schedules, 0, ARGV[job]) end
  end
  for id, due in pairs(taking.ticks) do redis.pcall('ZADD', KEYS.ticks, int(due), id) end
end
if #taking.members > 0 then
  -- rare take.lua
end
if string.find(flags, 'm', 1, true) then
  (function()
    -- include join.lua
  end)()
end
local answer = all_added and 'a*' or 'a' .. table.concat(answers)
if is_grouped then redis.call('HSET', KEYS.meta, 'groups', int(tonumber(has_groups) or micros), 'priorities', 1) end
-- include note.lua
-- include keep.lua
if has_groups then earliest = seating.regroup() or math.huge end
-- include news.lua
keep_notes()
if come then signal('due', 'watcher', watcher, watcher_until, come) end
for _, due in pairs(come and {} or taking.ticks) do taking.tick = math.min(taking.tick or due, due) end
if taking.tick then signal_earlier('d', nil, nil, taking.tick) end
do return answer end

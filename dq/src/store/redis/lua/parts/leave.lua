--[[ leave: every way out of RUNNING, so that none forgets the pending command. In this order: a replacement takes the
job's place; an end from outside outweighs the run's outcome; then the outcome decides.

Needs    outbox, if an outcome has follow-ups; jobs, metadata, delayed, unacked, dead, done, broadcasts, broadcast_jobs, running, pending, replacements, crashes,
         meta, wake; shut and priorities: fields of meta; node ('' if there is none); far_jobs, schedules and ticks, if an outcome is n; version, clock, bulk, signal, score, metadata, pending, recorder
Gives    leave(id, token, text, command, crash_text, outcome, argument, new, cap): plans the end of one run of the job with
         the metadata `text` (false if it has no record). The outcome is a (ack), j, J, t, o (rejoin: as added, after µs, at
         ms, after µs and the group or the topic is paused until then), r (retry after µs), b (rollback), p (park), x (dead), d (drop), n (a tick of a schedule) or c (reclaim; `cap` is the crash cap, or nil
         if no crash is charged), or l (its place was lost); `new` is its new metadata ('' = unchanged). The argument of a and x are
         the follow-ups, packed, or 0. write_plan(): writes it. begin_plan(): begins another
Holds    rules 2, 13, 19, 25: row, isolation and pending command go; the crash count goes unless the job is
         given back
Cost     per structure that changes one command per 1000 values; per replacement one HGET
]]
local EXPIRED = 6
local plan, earliest, earliest_broadcast, backs_off
local function begin_plan()
  earliest, earliest_broadcast, backs_off = nil, nil, nil
  -- Lists: what is removed, then fields and members.
  plan = setmetatable({longest = 0, has_retention = false, has_priority = false, has_group = false}, {__index = function(lists, name)
    lists[name] = {}
    return lists[name]
  end})
end
begin_plan()
-- Many jobs of a batch have the same token, and to take it apart costs more than all else.
local last_token, last_fence_text, last_due
local function parse_token(token)
  if token ~= last_token then
    last_token = token
    last_fence_text, last_due = string.match(token, '^(%d+):(%d+)$')
  end
  return last_fence_text, last_due
end
local function put(place, id, time) push(plan[place], int(time), id) end
local keeps_seat = false
local function put_delayed(id, due, text)
  earliest = math.min(earliest or due, due)
  if has_groups and not (keeps_seat and seating.has_seat(id, text)) then
    keeps_seat = false
    seating.join(id, text, due)
  end
  push(plan.delayed, score(due, text), id)
end
local function remove_job(id)
  push(plan.removed_jobs, id)
  push(plan.removed_metadata, id)
end
local function put_record(id, due, record)
  push(plan.records, id, record)
  local own = own_metadata(record)
  if own then push(plan.metadata, id, own) end
  put_delayed(id, due, record)
end
-- The job itself, its broadcast, or both.
local function deliver_job(id, deliver, due, record)
  if deliver ~= 'q' then
    earliest_broadcast = math.min(earliest_broadcast or due, due)
    put('broadcasts', id, due)
    push(plan.broadcast_records, id, record)
  end
  if deliver ~= 'b' then put_record(id, due, record) end
end
local function put_replacement(id, command, record)
  if command.deliver == 'q' then push(plan.removed_broadcasts, id) end
  if command.deliver == 'b' then remove_job(id) else push(plan.removed_metadata, id) end
  deliver_job(id, command.deliver, command.due, record)
end
local function update_metadata(id, old, new)
  if new ~= old then push(plan.metadata, id, new) end
end
-- An acked job is DONE for its retention; any other ended job is gone.
-- A move with the cause in the metadata.
local function note_failure(letter, number, id, text)
  note(letter .. (tells_moves and field(text, FIELD.cause) or 0), number, node, id)
end
local function die(id, text)
  note_failure('x', '', id, text)
  put('dead', id, floor)
end
local function finish_job(id, text, ending, new)
  -- A result brings a retention of its own if the job has none.
  local retain = ending == 'a' and text and field(new and new ~= '' and new or text, FIELD.retain) or 0
  if retain == 0 then return remove_job(id) end
  if new then update_metadata(id, text, with_metadata(text, new, parking_fence_of(text))) end
  if not field(text, FIELD.retain) then plan.has_retention = true end
  put('done', id, floor + retain)
end
local function give_back(id, due, text, parking_fence, crash_count)
  if crash_count > 0 then push(plan.crashes, id, crashes_text(crash_count, '')) end
  keeps_seat = true
  if parking_fence then put('unacked', id, due) else put_delayed(id, due, text) end
end
-- Returns the new crash count, or nil if the job becomes DEAD; and whether the crash convicts it.
local function charge(exhausted, crash_count, isolation, cap)
  cap = math.max(cap, 1)
  if isolation == '!' then
    if exhausted and crash_count >= cap + 2 then return nil, false end
    return cap + 2, true
  end
  if (isolation == '+' and crash_count <= cap) or crash_count < math.max(cap - 1, 1) then return crash_count + 1, false end
  return crash_count, false
end
local function reclaim(id, due, text, parking_fence, crash_count, isolation, cap, is_kept)
  if not cap then return give_back(id, due, text, parking_fence, crash_count) end
  local new_count, is_convicted = charge(field(text, FIELD.exhausted), crash_count, isolation, cap)
  if is_convicted then update_metadata(id, text, exhausted_by(CRASHES, text)) end
  if new_count then return give_back(id, due, text, parking_fence, new_count) end
  local new = with_metadata(text, '', nil)
  update_metadata(id, text, new)
  keeps_seat = is_kept
  die(id, new)
end
local function due_again(outcome, argument, text)
  if outcome == 'J' or outcome == 'r' or outcome == 'o' then return after(argument) end
  if outcome == 't' and tonumber(argument) > floor then return tonumber(argument) end
  return after((field(text, FIELD.delay) or 0) * 1000)
end
local function apply_outcome(id, fence, due, text, parking_fence, crash_count, outcome, argument, new)
  if outcome == 'b' then
    update_metadata(id, text, with_metadata(text, new, parking_fence))
    note('b', '', node, id)
    return give_back(id, due, text, parking_fence, crash_count)
  end
  new = with_metadata(text, new, outcome == 'p' and (parking_fence or fence) or nil)
  update_metadata(id, text, new)
  if outcome == 'p' then
    note('p', '', node, id)
    return put('unacked', id, floor)
  end
  if outcome == 'x' then return die(id, new) end
  local again = due_again(outcome, argument, new)
  if outcome == 'r' then note_failure('r', int(again), id, new) else note('j', int(again), node, id) end
  -- No run changes the priority or the group.
  put_delayed(id, again, text)
end
local function recover(id, text, parking_fence)
  if parking_fence then
    note('p', '', node, id)
    return put('unacked', id, floor)
  end
  local new = exhausted_by(PLACE_LOST, text)
  update_metadata(id, text, new)
  die(id, new)
end
-- Whether a job waits, runs or is UNACKED.
local function has_not_ended(id)
  if redis.call('ZSCORE', KEYS.broadcasts, id) or redis.call('HEXISTS', KEYS.far_jobs, id) == 1 then return true end
  return redis.call('HEXISTS', KEYS.jobs, id) == 1 and not redis.call('ZSCORE', KEYS.dead, id) and not redis.call('ZSCORE', KEYS.done, id)
end
local function put_new(id, deliver, due, record)
  if redis.call('ZSCORE', KEYS.broadcasts, id) or redis.call('HEXISTS', KEYS.far_jobs, id) == 1 then return end
  if redis.call('ZSCORE', KEYS.done, id) then
    push(plan.removed_done, id)
    remove_job(id)
  elseif redis.call('HEXISTS', KEYS.jobs, id) == 1 then
    return
  end
  note('a', int(due), '', id)
  deliver_job(id, deliver, due, record)
end
-- The jobs of a tick are new, unless the last one has not ended. `packed` is as `packed` in outcomes.rs writes it. Returns the record
-- of the schedule from now on, and its next tick or 0.
local function put_jobs_of_tick(packed)
  local tick = cmsgpack.unpack(packed)
  local next_due, retains, has_priority, has_group, longest, unless, skipped, schedule = unpack(tick, 1, 8)
  if retains then plan.has_retention = true end
  if has_priority then plan.has_priority = true end
  if has_group then
    plan.has_group, priorities, has_groups = true, priorities or 1, has_groups or micros
  end
  plan.longest = math.max(plan.longest, longest)
  if unless ~= '' and has_not_ended(unless) then return skipped, next_due end
  for i = 9, #tick, 4 do put_new(unpack(tick, i, i + 3)) end
  return schedule, next_due
end
local function end_schedule(id)
  redis.call('ZREM', KEYS.schedules, id)
  redis.pcall('ZREM', KEYS.ticks, id)
end
-- A schedule had a tick, and waits for the next one.
local function put_tick(id, due, packed)
  local schedule, next_due = put_jobs_of_tick(packed)
  if next_due == 0 then
    end_schedule(id)
    note('k', '', node, id)
    return remove_job(id)
  end
  -- It is there, unless an operator removed it.
  redis.call('ZADD', KEYS.schedules, 0, id)
  push(plan.removed_metadata, id)
  local again = math.max(next_due, due + 1)
  if string.sub(id, 1, 12) == 'dq:schedule:' then
    redis.pcall('ZADD', KEYS.ticks, int(again), id)
    plan.tick = math.min(rawget(plan, 'tick') or again, again)
  end
  note('j', int(again), node, id)
  put_record(id, again, schedule)
end
local function put_follow_ups(packed)
  -- include put_outbox.lua
end
local function end_run(id, token, text, command, crash_text, outcome, argument, new, cap, keeps)
  -- A rollback, a drop, a reclaim and a recovery end no run, and neither does a job that expired before it could run.
  local is_no_run = not KEYS.statistics or string.find('bdcl', outcome, 1, true) or outcome == 'x' and field(new, FIELD.cause) == EXPIRED
  if not is_no_run then note('e' .. outcome, '', node, id) end
  push(plan.removed_rows, id)
  if command then push(plan.removed_commands, id) end
  if command and command.deliver then push(plan.removed_replacements, id) end
  if crash_text then push(plan.removed_crashes, id) end
  if outcome == 'o' then
    local until_ms, name = after(argument), has_groups and seating.group_of(text, id) or ''
    backs_off = backs_off or {}
    if not backs_off[name] or until_ms > backs_off[name].until_ms then backs_off[name] = {until_ms = until_ms, id = id} end
  end
  local fence, due = parse_token(token)
  local parking_fence = text and parking_fence_of(text)
  local ending = command and command.ending
  if ending and command.fence ~= '' and command.fence ~= fence and command.fence ~= parking_fence then ending = nil end
  local is_followed = #argument > 1 and (outcome == 'a' or outcome == 'x' and text)
  if is_followed and (not ending or ending == 'a' and outcome == 'a') then put_follow_ups(argument) end
  local replaces = command and command.deliver and (ending or not command.conditional)
  local replacement = replaces and redis.call('HGET', KEYS.replacements, id)
  if replacement then
    if outcome == 'n' and not ending then put_jobs_of_tick(argument) end
    note('a', int(command.due), '', id)
    return put_replacement(id, command, replacement)
  end
  if ending then
    if outcome == 'n' then end_schedule(id) end
    note(ending == 'a' and 'k' or 'd', '', '', id)
    return finish_job(id, text, ending)
  end
  if outcome == 'a' then
    note('k', '', node, id)
    return finish_job(id, text, 'a', new)
  end
  if outcome == 'd' or not text then note('z', '', '', id) end
  if outcome == 'd' then return remove_job(id) end
  if not text then
    push(plan.removed_metadata, id)
    return push(plan.dropped, id)
  end
  if not fence then
    update_metadata(id, text, with_metadata(text, '', nil))
    return die(id, text)
  end
  if outcome == 'l' then return recover(id, text, parking_fence) end
  if outcome == 'n' then return put_tick(id, tonumber(due), argument) end
  local crash_count, isolation = parse_crashes(crash_text)
  if outcome == 'c' then
    note('l', '', node, id)
    return reclaim(id, tonumber(due), text, parking_fence, crash_count, isolation, cap, keeps)
  end
  keeps_seat = keeps
  apply_outcome(id, fence, tonumber(due), text, parking_fence, crash_count, outcome, argument, new)
end
-- Whoever keeps no seat in its group gives it back.
local function leave(id, token, text, ...)
  keeps_seat = false
  end_run(id, token, text, ...)
  if has_groups and not keeps_seat then seating.free_seat(id, text) end
end
local function write_list(command, key, name)
  local list = rawget(plan, name)
  if list then write(command, key, list) end
end
local function write_plan()
  local head, broadcast_head = (earliest or has_groups) and head_of(KEYS.delayed), earliest_broadcast and head_of(KEYS.broadcasts)
  write_list('HDEL', KEYS.running, 'removed_rows')
  write_list('HDEL', KEYS.pending, 'removed_commands')
  write_list('HDEL', KEYS.replacements, 'removed_replacements')
  write_list('HDEL', KEYS.crashes, 'removed_crashes')
  write_list('HDEL', KEYS.jobs, 'removed_jobs')
  write_list('HDEL', KEYS.metadata, 'removed_metadata')
  write_list('ZREM', KEYS.broadcasts, 'removed_broadcasts')
  write_list('HDEL', KEYS.broadcast_jobs, 'removed_broadcasts')
  write_list('ZREM', KEYS.done, 'removed_done')
  if plan.has_retention then redis.call('HSET', KEYS.meta, 'retains', 1) end
  if plan.has_priority then redis.call('HSET', KEYS.meta, 'priorities', 1) end
  if plan.has_group then redis.call('HSET', KEYS.meta, 'priorities', 1, 'groups', int(tonumber(has_groups) or micros)) end
  if plan.longest > 0 and plan.longest > (tonumber(redis.call('HGET', KEYS.meta, 'largest') or '') or 0) then
    redis.call('HSET', KEYS.meta, 'largest', plan.longest)
  end
  write_list('HSET', KEYS.jobs, 'records')
  -- As in the part `claim`, a long value makes the hash a table, which Redis does not search from the start for each field.
  local is_searched = #plan.metadata > 64 and redis.call('HLEN', KEYS.metadata) <= 512
  if is_searched then redis.call('HSET', KEYS.metadata, '', '-----------------------------------------------------------------') end
  write('HSET', KEYS.metadata, plan.metadata)
  if is_searched then redis.call('HDEL', KEYS.metadata, '') end
  write_list('HSET', KEYS.crashes, 'crashes')
  write_list('HSET', KEYS.broadcast_jobs, 'broadcast_records')
  write_list('ZADD', KEYS.broadcasts, 'broadcasts')
  write_list('ZADD', KEYS.delayed, 'delayed')
  write_list('ZADD', KEYS.unacked, 'unacked')
  write_list('ZADD', KEYS.dead, 'dead')
  write_list('ZADD', KEYS.done, 'done')
  if shut and rawget(plan, 'removed_rows') then
    -- include slot_free.lua
  end
  if backs_off then
    -- include back_off.lua
  end
  if has_groups then earliest = seating.regroup() end
  signal_earlier('d', head, earliest, rawget(plan, 'tick'))
  signal_earlier('b', broadcast_head, earliest_broadcast)
end

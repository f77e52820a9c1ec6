--[[ leave: every way out of RUNNING, so that none forgets the pending command. In this order: a replacement takes the
job's place; an end from outside outweighs the run's outcome; then the outcome decides.

Needs    jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs, running, pending, crashes, meta, wake; version,
         clock, bulk, signal, metadata, pending
Gives    leave(id, token, record, command, crash_text, outcome, argument, metadata, cap): plans the end of one run. The
         outcome is a (ack), j, J, t (rejoin: as added, after µs, at ms), r (retry after µs), b (rollback), p (park), x
         (dead), d (drop) or c (reclaim; `cap` is the crash cap, or nil if no crash is charged). write_plan(): writes it
Holds    rules 2, 12, 13, 17, 19, 25: row, isolation and pending command go; the crash count goes unless the job is
         given back
Cost     per structure that changes one command per 1000 values
]]
local plan = {
  removed_rows = {}, removed_jobs = {}, removed_commands = {}, removed_crashes = {}, removed_broadcasts = {},
  records = {}, crashes = {}, broadcast_records = {},
  delayed = {}, unacked = {}, dead = {}, done = {}, broadcasts = {},
  dropped = {},
}
local earliest, earliest_broadcast
local function push(list, a, b)
  list[#list + 1] = a
  if b then list[#list + 1] = b end
end
local function put(place, id, time) push(plan[place], int(time), id) end
local function put_delayed(id, due)
  if not earliest or due < earliest then earliest = due end
  put('delayed', id, due)
end
local function put_replacement(id, command)
  if command.deliver == 'q' then
    push(plan.removed_broadcasts, id)
  else
    if not earliest_broadcast or command.due < earliest_broadcast then earliest_broadcast = command.due end
    put('broadcasts', id, command.due)
    push(plan.broadcast_records, id, command.record)
  end
  if command.deliver == 'b' then return push(plan.removed_jobs, id) end
  push(plan.records, id, command.record)
  put_delayed(id, command.due)
end
-- An acked job is DONE for its retention; any other ended job is gone.
local function finish_job(id, record, ending, metadata)
  local retain = ending == 'a' and record and fixed(record).retain or 0
  if retain == 0 then return push(plan.removed_jobs, id) end
  if metadata then push(plan.records, id, with_metadata(record, metadata, nil)) end
  put('done', id, floor + retain)
end
local function give_back(id, due, parking_fence, crash_count)
  if crash_count > 0 then push(plan.crashes, id, crashes_text(crash_count, '')) end
  if parking_fence then put('unacked', id, due) else put_delayed(id, due) end
end
local function update_record(id, old, new)
  if new ~= old then push(plan.records, id, new) end
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
local function reclaim(id, due, record, parking_fence, crash_count, isolation, cap)
  if not cap then return give_back(id, due, parking_fence, crash_count) end
  local new_count, is_convicted = charge(fixed(record).exhausted, crash_count, isolation, cap)
  if is_convicted then update_record(id, record, exhausted_by_crashes(record)) end
  if new_count then return give_back(id, due, parking_fence, new_count) end
  update_record(id, record, with_metadata(record, '', nil))
  put('dead', id, floor)
end
local function due_again(outcome, argument, record)
  if outcome == 'J' or outcome == 'r' then return after(argument) end
  if outcome == 't' and tonumber(argument) > floor then return tonumber(argument) end
  return after(fixed(record).delay * 1000)
end
local function apply_outcome(id, fence, due, record, parking_fence, crash_count, outcome, argument, metadata)
  if outcome == 'b' then
    update_record(id, record, with_metadata(record, metadata, parking_fence))
    return give_back(id, due, parking_fence, crash_count)
  end
  local new = with_metadata(record, metadata, outcome == 'p' and (parking_fence or fence) or nil)
  update_record(id, record, new)
  if outcome == 'p' then return put('unacked', id, floor) end
  if outcome == 'x' then return put('dead', id, floor) end
  put_delayed(id, due_again(outcome, argument, new))
end
local function leave(id, token, record, command, crash_text, outcome, argument, metadata, cap)
  push(plan.removed_rows, id)
  if command then push(plan.removed_commands, id) end
  if crash_text then push(plan.removed_crashes, id) end
  local fence, due = string.match(token, '^(%d+):(%d+)$')
  local parking_fence = record and fixed(record).parking_fence
  local ending = command and command.ending
  if ending and command.fence ~= '' and command.fence ~= fence and command.fence ~= parking_fence then ending = nil end
  if command and command.record and (ending or not command.conditional) then return put_replacement(id, command) end
  if ending then return finish_job(id, record, ending) end
  if outcome == 'a' then return finish_job(id, record, 'a', metadata) end
  if outcome == 'd' then return push(plan.removed_jobs, id) end
  if not record then return push(plan.dropped, id) end
  if not fence then
    update_record(id, record, with_metadata(record, '', nil))
    return put('dead', id, floor)
  end
  local crash_count, isolation = parse_crashes(crash_text)
  if outcome == 'c' then return reclaim(id, tonumber(due), record, parking_fence, crash_count, isolation, cap) end
  apply_outcome(id, fence, tonumber(due), record, parking_fence, crash_count, outcome, argument, metadata)
end
local function write_plan()
  local head = earliest and redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  local broadcast_head = earliest_broadcast and redis.call('ZRANGE', broadcasts, 0, 0, 'WITHSCORES')
  write('HDEL', running, plan.removed_rows)
  write('HDEL', pending, plan.removed_commands)
  write('HDEL', crashes, plan.removed_crashes)
  write('HDEL', jobs, plan.removed_jobs)
  if #plan.removed_broadcasts > 0 then
    write('ZREM', broadcasts, plan.removed_broadcasts)
    write('HDEL', broadcast_jobs, plan.removed_broadcasts)
  end
  write('HSET', jobs, plan.records)
  write('HSET', crashes, plan.crashes)
  write('HSET', broadcast_jobs, plan.broadcast_records)
  write('ZADD', broadcasts, plan.broadcasts)
  write('ZADD', delayed, plan.delayed)
  write('ZADD', unacked, plan.unacked)
  write('ZADD', dead, plan.dead)
  write('ZADD', done, plan.done)
  if head and (not head[2] or earliest < tonumber(head[2])) then signal('due', watcher, watcher_until) end
  if broadcast_head and (not broadcast_head[2] or earliest_broadcast < tonumber(broadcast_head[2])) then
    local publisher = redis.call('HMGET', meta, 'publisher', 'publisher-until')
    signal('broadcast', publisher[1], publisher[2])
  end
end

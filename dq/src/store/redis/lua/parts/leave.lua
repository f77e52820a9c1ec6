--[[ leave: every way out of RUNNING, so that none forgets the mark. In this order: a replacement takes the place; an end
from outside outweighs what the run says; then the run decides.

Needs    jobs, delayed, unacked, dead, done, casts, cast_jobs, running, marks, crashes, meta, wake; clock, bulk, signal, front,
         marks; known (fields of meta, the watcher at 4 and 5)
Gives    leave(id, token, record, mark, lost, how, argument, front, charged): plans the end of one run. `how` is a (ack),
         j, J, t (rejoin: as added, after µs, at ms), r (retry after µs), b (rollback), p (park), x (dead), d (drop) or
         c (reclaim; `charged` is the cap, nil: no crash is charged). finish(): writes the plan
Holds    rules 2, 12, 13, 17, 19, 25: row, mark and *begun* are gone, the crash count too unless the job was given back
Cost     per structure one command for 1000 values; nothing for a structure that does not change
]]
local plan = {
  rows = {}, gone = {}, records = {}, delayed = {}, unacked = {}, dead = {}, done = {}, unmarked = {}, settled = {}, crashes = {},
  casts = {}, cast_records = {}, uncast = {}, lost = {},
}
local earliest, earliest_cast
local function push(list, a, b)
  list[#list + 1] = a
  if b then list[#list + 1] = b end
end
local function shelve(place, id, at) push(plan[place], int(at), id) end
local function delay(id, at)
  if not earliest or at < earliest then earliest = at end
  shelve('delayed', id, at)
end
local function replace(id, mark)
  if mark.deliver == 'q' then
    push(plan.uncast, id)
  else
    if not earliest_cast or mark.due < earliest_cast then earliest_cast = mark.due end
    shelve('casts', id, mark.due)
    push(plan.cast_records, id, mark.record)
  end
  if mark.deliver == 'b' then return push(plan.gone, id) end
  push(plan.records, id, mark.record)
  delay(id, mark.due)
end
local function finish_job(id, record, how, front)
  local retain = how == 'a' and record and fixed(record).retain or 0
  if retain == 0 then return push(plan.gone, id) end
  if front then push(plan.records, id, with_front(record, front, nil)) end
  shelve('done', id, floor + retain)
end
local function give_back(id, token_due, parked, count)
  if count > 0 then push(plan.crashes, id, crashes_text(count)) end
  if parked then shelve('unacked', id, token_due) else delay(id, token_due) end
end
local function changed(id, old, new)
  if new ~= old then push(plan.records, id, new) end
end
-- The new crash count, or nil when the job is to be given up; and the record.
local function charge(record, count, begun, cap)
  cap = math.max(cap, 1)
  if count + 1 >= cap and not begun then return count, record end
  local spent = fixed(record).exhausted
  if count >= cap then return nil, spent and record or exhaust_by_crashes(record) end
  return count + 1, count + 1 >= cap and exhaust_by_crashes(record) or record
end
local function reclaim(id, due, record, parked, count, begun, charged)
  if not charged then return give_back(id, due, parked, count) end
  local left, new = charge(record, count, begun, charged)
  if left then
    changed(id, record, new)
    return give_back(id, due, parked, left)
  end
  changed(id, record, with_front(new, '', nil))
  shelve('dead', id, floor)
end
local function rejoined_at(how, argument, record)
  if how == 'J' or how == 'r' then return after(argument) end
  if how == 't' and tonumber(argument) > floor then return tonumber(argument) end
  return after(fixed(record).delay * 1000)
end
local function decide(id, fence, due, record, parked, count, how, argument, front)
  if how == 'b' then
    changed(id, record, with_front(record, front, parked))
    return give_back(id, due, parked, count)
  end
  local new = with_front(record, front, how == 'p' and (parked or fence) or nil)
  changed(id, record, new)
  if how == 'p' then return shelve('unacked', id, floor) end
  if how == 'x' then return shelve('dead', id, floor) end
  delay(id, rejoined_at(how, argument, new))
end
local function leave(id, token, record, mark, lost, how, argument, front, charged)
  push(plan.rows, id)
  if mark then push(plan.unmarked, id) end
  if lost then push(plan.settled, id) end
  local fence, due = string.match(token, '^(%d+):(%d+)$')
  local parked = record and fixed(record).parked
  local ended = mark and mark.how
  if ended and mark.fence ~= '' and mark.fence ~= fence and mark.fence ~= parked then ended = nil end
  if mark and mark.record and (ended or not mark.conditional) then return replace(id, mark) end
  if ended then return finish_job(id, record, ended) end
  if how == 'a' then return finish_job(id, record, 'a', front) end
  if how == 'd' then return push(plan.gone, id) end
  if not record then return push(plan.lost, id) end
  if not fence then
    changed(id, record, with_front(record, '', nil))
    return shelve('dead', id, floor)
  end
  local count, begun = crashes_of(lost)
  if how == 'c' then return reclaim(id, tonumber(due), record, parked, count, begun, charged) end
  decide(id, fence, tonumber(due), record, parked, count, how, argument, front)
end
local function finish()
  local head = earliest and redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  local cast_head = earliest_cast and redis.call('ZRANGE', casts, 0, 0, 'WITHSCORES')
  write('HDEL', running, plan.rows)
  write('HDEL', marks, plan.unmarked)
  write('HDEL', crashes, plan.settled)
  write('HDEL', jobs, plan.gone)
  if #plan.uncast > 0 then
    write('ZREM', casts, plan.uncast)
    write('HDEL', cast_jobs, plan.uncast)
  end
  write('HSET', jobs, plan.records)
  write('HSET', crashes, plan.crashes)
  write('HSET', cast_jobs, plan.cast_records)
  write('ZADD', casts, plan.casts)
  write('ZADD', delayed, plan.delayed)
  write('ZADD', unacked, plan.unacked)
  write('ZADD', dead, plan.dead)
  write('ZADD', done, plan.done)
  if head and (not head[2] or earliest < tonumber(head[2])) then signal('due', known[4], known[5]) end
  if cast_head and (not cast_head[2] or earliest_cast < tonumber(cast_head[2])) then
    local role = redis.call('HMGET', meta, 'caster', 'caster-until')
    signal('cast', role[1], role[2])
  end
end

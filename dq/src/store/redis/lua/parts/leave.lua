--[[ leave: every way out of RUNNING, so that none forgets the pending. In this order: a replacement takes the place; an end
from outside outweighs what the run says; then the run decides.

Needs    jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs, running, pending_commands, crashes, meta, wake; clock, bulk, signal, metadata,
         pending_commands; known (fields of meta, the watcher at 4 and 5)
Gives    leave(id, token, record, pending, lost, how, argument, metadata, charged): plans the end of one run. `how` is a (ack),
         j, J, t (rejoin: as added, after µs, at ms), r (retry after µs), b (rollback), p (park), x (dead), d (drop) or
         c (reclaim; `charged` is the cap, nil: no crash is charged). finish(): writes the plan
Holds    rules 2, 12, 13, 17, 19, 25: row, pending and *isolated* are gone, the crash count too unless the job was given back
Cost     per structure one command for 1000 values; nothing for a structure that does not change
]]
local plan = {
  rows = {}, gone = {}, records = {}, delayed = {}, unacked = {}, dead = {}, done = {}, pending_removed = {}, settled = {}, crashes = {},
  broadcasts = {}, broadcast_records = {}, removed_broadcast = {}, lost = {},
}
local earliest, earliest_broadcast
local function push(list, a, b)
  list[#list + 1] = a
  if b then list[#list + 1] = b end
end
local function shelve(place, id, at) push(plan[place], int(at), id) end
local function delay(id, at)
  if not earliest or at < earliest then earliest = at end
  shelve('delayed', id, at)
end
local function replace(id, pending)
  if pending.deliver == 'q' then
    push(plan.removed_broadcast, id)
  else
    if not earliest_broadcast or pending.due < earliest_broadcast then earliest_broadcast = pending.due end
    shelve('broadcasts', id, pending.due)
    push(plan.broadcast_records, id, pending.record)
  end
  if pending.deliver == 'b' then return push(plan.gone, id) end
  push(plan.records, id, pending.record)
  delay(id, pending.due)
end
local function finish_job(id, record, how, metadata)
  local retain = how == 'a' and record and fixed(record).retain or 0
  if retain == 0 then return push(plan.gone, id) end
  if metadata then push(plan.records, id, with_metadata(record, metadata, nil)) end
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
local function charge(record, count, isolated, cap)
  cap = math.max(cap, 1)
  if count + 1 >= cap and not isolated then return count, record end
  local spent = fixed(record).exhausted
  if count >= cap then return nil, spent and record or exhaust_by_crashes(record) end
  return count + 1, count + 1 >= cap and exhaust_by_crashes(record) or record
end
local function reclaim(id, due, record, parked, count, isolated, charged)
  if not charged then return give_back(id, due, parked, count) end
  local left, new = charge(record, count, isolated, charged)
  if left then
    changed(id, record, new)
    return give_back(id, due, parked, left)
  end
  changed(id, record, with_metadata(new, '', nil))
  shelve('dead', id, floor)
end
local function rejoined_at(how, argument, record)
  if how == 'J' or how == 'r' then return after(argument) end
  if how == 't' and tonumber(argument) > floor then return tonumber(argument) end
  return after(fixed(record).delay * 1000)
end
local function decide(id, fence, due, record, parked, count, how, argument, metadata)
  if how == 'b' then
    changed(id, record, with_metadata(record, metadata, parked))
    return give_back(id, due, parked, count)
  end
  local new = with_metadata(record, metadata, how == 'p' and (parked or fence) or nil)
  changed(id, record, new)
  if how == 'p' then return shelve('unacked', id, floor) end
  if how == 'x' then return shelve('dead', id, floor) end
  delay(id, rejoined_at(how, argument, new))
end
local function leave(id, token, record, pending, lost, how, argument, metadata, charged)
  push(plan.rows, id)
  if pending then push(plan.pending_removed, id) end
  if lost then push(plan.settled, id) end
  local fence, due = string.match(token, '^(%d+):(%d+)$')
  local parked = record and fixed(record).parked
  local ended = pending and pending.how
  if ended and pending.fence ~= '' and pending.fence ~= fence and pending.fence ~= parked then ended = nil end
  if pending and pending.record and (ended or not pending.conditional) then return replace(id, pending) end
  if ended then return finish_job(id, record, ended) end
  if how == 'a' then return finish_job(id, record, 'a', metadata) end
  if how == 'd' then return push(plan.gone, id) end
  if not record then return push(plan.lost, id) end
  if not fence then
    changed(id, record, with_metadata(record, '', nil))
    return shelve('dead', id, floor)
  end
  local count, isolated = crashes_of(lost)
  if how == 'c' then return reclaim(id, tonumber(due), record, parked, count, isolated, charged) end
  decide(id, fence, tonumber(due), record, parked, count, how, argument, metadata)
end
local function finish()
  local head = earliest and redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')
  local broadcast_head = earliest_broadcast and redis.call('ZRANGE', broadcasts, 0, 0, 'WITHSCORES')
  write('HDEL', running, plan.rows)
  write('HDEL', pending_commands, plan.pending_removed)
  write('HDEL', crashes, plan.settled)
  write('HDEL', jobs, plan.gone)
  if #plan.removed_broadcast > 0 then
    write('ZREM', broadcasts, plan.removed_broadcast)
    write('HDEL', broadcast_jobs, plan.removed_broadcast)
  end
  write('HSET', jobs, plan.records)
  write('HSET', crashes, plan.crashes)
  write('HSET', broadcast_jobs, plan.broadcast_records)
  write('ZADD', broadcasts, plan.broadcasts)
  write('ZADD', delayed, plan.delayed)
  write('ZADD', unacked, plan.unacked)
  write('ZADD', dead, plan.dead)
  write('ZADD', done, plan.done)
  if head and (not head[2] or earliest < tonumber(head[2])) then signal('due', known[4], known[5]) end
  if broadcast_head and (not broadcast_head[2] or earliest_broadcast < tonumber(broadcast_head[2])) then
    local role = redis.call('HMGET', meta, 'publisher', 'publisher-until')
    signal('broadcast', role[1], role[2])
  end
end

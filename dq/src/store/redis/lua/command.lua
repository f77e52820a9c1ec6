--[[ command: delete, cancel, ack and requeue from outside, by id, in order.

KEYS[1]  {app:topic}:jobs            HASH  job id -> record
KEYS[2]  {app:topic}:delayed         ZSET  job id scored by due time, ms
KEYS[3]  {app:topic}:unacked         ZSET  job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET  job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done            ZSET  job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:broadcasts         ZSET  broadcast id scored by due time, ms
KEYS[7]  {app:topic}:broadcast-jobs       HASH  broadcast id -> record
KEYS[8]  {app:topic}:pending         HASH  job id -> pending
KEYS[9]  {app:topic}:crashes         HASH  job id -> crashes, `!` when isolated
KEYS[10] {app:topic}:calls:PRODUCER  HASH  number mod 16 -> number, answer
KEYS[11] {app:topic}:meta            HASH  protocol, roles
KEYS[12] {app:topic}:wake            CHANNEL of any node
ARGV[1]  number of the batch
ARGV[2]  and on: verb (d delete, c cancel, a ack, q requeue), id, fence or ''

Returns  {'done', answer, removed records or false}, {'kept', answer} or {'late'}; the answer is `w` and two characters for
         each: where it was found (d r u x f, or - for nowhere), and + or - for whether anything changed
Holds    rules 2, 13, 15, 17, 18, 19: a running job gets a pending and is not touched
Cost     O(n log n)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local pending_commands, crashes, calls, meta, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local number = ARGV[1]
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include pending.lua
-- include place.lua
-- include calls.lua
-- What is known of each id; the steps below change it, and the end writes it.
local views, order, ids = {}, {}, {}
for i = 2, #ARGV, 3 do
  if not views[ARGV[i + 1]] then
    ids[#ids + 1] = ARGV[i + 1]
    views[ARGV[i + 1]] = {id = ARGV[i + 1]}
  end
end
local records, texts, broadcast_records = read('HMGET', jobs, ids), read('HMGET', pending_commands, ids), read('HMGET', broadcast_jobs, ids)
local found_ids = {}
for i, id in ipairs(ids) do
  local view = views[id]
  view.record, view.pending, view.broadcast = records[i] or nil, pending_of(texts[i]), broadcast_records[i] or nil
  if view.record then found_ids[#found_ids + 1] = id end
  order[i] = view
end
local places = places_of(found_ids)
for i, id in ipairs(found_ids) do views[id].state = places[i] end
local function state_of(view)
  if view.broadcast and (not view.state or view.state == 'f') then return 'd' end
  return view.state
end
local function remove(view)
  local record = view.record
  view.state, view.record, view.moved = nil, nil, true
  return record
end
local function finish_acked(view)
  local retain = fixed(view.record).retain
  if retain == 0 then return remove(view) end
  view.state, view.at, view.moved = 'f', floor + retain, true
end
local function is_of_run(view, fence)
  return fence == '' or (view.record and fixed(view.record).parked) == fence
end
local function removed_broadcast(view)
  local record = view.broadcast
  if record then view.broadcast, view.removed_broadcast = nil, true end
  return record
end
-- Told at the end: a server that refuses writes still publishes, and a refused cancel stops no handler.
local told = {}
local function tell(verb, id) told[#told + 1] = 'command ' .. verb .. ' ' .. id end
local function delete(view, state, how, verb)
  local broadcast = removed_broadcast(view)
  if state ~= 'r' then return true, remove(view) or broadcast end
  local pending = view.pending
  local changed = not pending or pending.how ~= how or pending.fence ~= '' or pending.record ~= nil
  view.pending, view.pending_changed = {how = how, fence = ''}, true
  tell(verb, view.id)
  return changed or broadcast ~= nil
end
local function ack_run(view, fence)
  local pending = view.pending or {fence = ''}
  local counts = not pending.how
  if pending.how and pending.fence ~= '' then counts = fence == '' or tonumber(fence) > tonumber(pending.fence) end
  if not counts then return false end
  pending.how, pending.fence = 'a', fence
  if fence == '' then
    pending.conditional = false
    tell('ack', view.id)
  end
  view.pending, view.pending_changed = pending, true
  return true
end
local function ack(view, state, fence)
  if state == 'd' and fence == '' then
    local broadcast = removed_broadcast(view)
    local removed = view.state == 'd' and finish_acked(view) or nil
    return true, removed or broadcast
  end
  if state == 'u' and is_of_run(view, fence) then return true, finish_acked(view) end
  return state == 'r' and ack_run(view, fence)
end
local earliest
local function requeue(view, state, fence)
  if (state ~= 'x' and state ~= 'u') or not is_of_run(view, fence) then return false end
  if state == 'x' then view.record = revived(view.record) end
  view.record, view.written = with_metadata(view.record, '', nil), true
  view.state, view.at, view.moved = 'd', ceil, true
  earliest = ceil
  return true
end
local answers, removed = {}, {}
for i = 2, #ARGV, 3 do
  local verb, view, fence = ARGV[i], views[ARGV[i + 1]], ARGV[i + 2]
  local state, changed, record = state_of(view), false, nil
  if state and verb == 'd' then
    changed, record = delete(view, state, 'd', 'delete')
  elseif state and verb == 'c' then
    changed, record = delete(view, state, 'c', 'cancel')
  elseif state and verb == 'a' then
    changed, record = ack(view, state, fence)
  elseif state then
    changed = requeue(view, state, fence)
  end
  answers[#answers + 1] = (state or '-') .. (changed and '+' or '-')
  removed[#removed + 1] = record or false
end
redis.call('HDEL', pending_commands, '')
local head = earliest and redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
local moved, gone, removed_broadcasts = {}, {}, {}
for _, view in ipairs(order) do
  if view.moved then moved[#moved + 1] = view.id end
  if view.moved and not view.state then gone[#gone + 1] = view.id end
  if view.removed_broadcast then removed_broadcasts[#removed_broadcasts + 1] = view.id end
end
if #moved > 0 then
  for _, place in ipairs({delayed, unacked, dead, done}) do write('ZREM', place, moved) end
  write('HDEL', crashes, moved)
  write('HDEL', jobs, gone)
end
write('ZREM', broadcasts, removed_broadcasts)
write('HDEL', broadcast_jobs, removed_broadcasts)
for _, view in ipairs(order) do
  if view.written and view.state then redis.call('HSET', jobs, view.id, view.record) end
  if view.moved and view.state then redis.call('ZADD', view.state == 'f' and done or delayed, view.at, view.id) end
  if view.pending_changed then redis.call('HSET', pending_commands, view.id, pending_text(view.pending)) end
end
local answer = 'w' .. table.concat(answers)
keep(answer)
for _, text in ipairs(told) do publish(wake, text) end
if earliest and (not head or earliest < tonumber(head)) then signal('due', known[4], known[5]) end
return {'done', answer, removed}

--[[ add: new jobs -> DELAYED, among the broadcasts, or into the pending of a running job.

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
KEYS[11] {app:topic}:meta            HASH  protocol, roles; retains: a job with a retention was added once
KEYS[12] {app:topic}:wake            CHANNEL of any node
ARGV[1]  number of the batch
ARGV[2]  retains: 1 where a job of the batch has a retention
ARGV[3]  how many jobs are not plain: a chosen id, a broadcast, or an expiry
ARGV[4]  and on, never an id twice: id, how, record. `how` is DUPLICATE DELIVER DUE EXPIRY without blanks: g (generated id), r
         (reject), k (keep) or p (replace); q, b or t (queue, broadcast, both); +µs or @ms; nothing or ,ms after the due
         time, which goes into the record, where a field for it is

Returns  {'done', answer}, {'kept', answer} or {'late'}; the answer is `a*` (all added) or `a` and for each job A (added),
         d r u x (exists, and where), D U X (replaced, and where), W (waits for the end of a run), I (if the end applies)
Holds    rules 2, 12, 13, 17, 18, 24: whatever puts an id into a place takes it out of every other
Cost     O(n log n): per job one field and one member written, one field read where the id was chosen
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local pending_commands, crashes, calls, meta, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local number, retains, others = ARGV[1], ARGV[2], tonumber(ARGV[3])
local LAST = 281474976710655
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include pending.lua
-- include place.lua
-- include calls.lua
local parsed = {}
local function parse(how)
  local duplicate, deliver, kind, time, expiry = string.match(how, '^([grkp])([qbt])([+@])(%d+),?(%d*)$')
  local due = kind == '+' and after(time) or math.max(tonumber(time), ceil)
  local p = {duplicate = duplicate, deliver = deliver, due = due, text = int(due)}
  p.is_plain = duplicate == 'g' and deliver == 'q' and expiry == ''
  if expiry ~= '' then p.expires = struct.pack('<I6', math.min(due + expiry, LAST)) end
  parsed[how] = p
  return p
end
local function stamped(record, expires)
  local at = string.byte(record, 4) % 2 == 1 and 14 or 8
  return string.sub(record, 1, at) .. expires .. string.sub(record, at + 7)
end
-- What is known of the ids that callers chose.
local chosen = {}
if others > 0 then
  wrong = wrong_type(true)
  if wrong then return wrong end
  for i = 4, #ARGV, 3 do
    if string.byte(ARGV[i + 1]) ~= 103 then chosen[#chosen + 1] = ARGV[i] end
  end
end
local known_ids, states, broadcast_waits, pending_changed = {}, {}, {}, {}
if #chosen > 0 then
  local records = read('HMGET', jobs, chosen)
  for i, id in ipairs(chosen) do
    if records[i] then known_ids[#known_ids + 1] = id end
  end
  if #known_ids > 0 then
    local places = places_of(known_ids)
    local texts = read('HMGET', pending_commands, known_ids)
    for i, id in ipairs(known_ids) do
      states[id], pending_changed[id] = places[i], pending_of(texts[i])
    end
  end
  if redis.call('EXISTS', broadcasts) == 1 then
    local waits = read('ZMSCORE', broadcasts, chosen)
    for i, id in ipairs(chosen) do broadcast_waits[id] = waits[i] end
  end
end
local z, h, broadcast_z, broadcast_h, pending_h = {}, {}, {}, {}, {}
local leaves, removed_broadcast, gone = {}, {}, {}
local earliest, earliest_broadcast = math.huge, math.huge
local function put(id, p, record)
  if states[id] then leaves[#leaves + 1] = id end
  if p.deliver ~= 'q' then
    broadcast_z[#broadcast_z + 1], broadcast_z[#broadcast_z + 2] = p.text, id
    broadcast_h[#broadcast_h + 1], broadcast_h[#broadcast_h + 2] = id, record
    if p.due < earliest_broadcast then earliest_broadcast = p.due end
  elseif broadcast_waits[id] then
    removed_broadcast[#removed_broadcast + 1] = id
  end
  if p.deliver ~= 'b' then
    local n = #z
    z[n + 1], z[n + 2], h[n + 1], h[n + 2] = p.text, id, id, record
    if p.due < earliest then earliest = p.due end
  elseif states[id] then
    gone[#gone + 1] = id
  end
end
local function over_run(id, p, record)
  local pending = pending_changed[id]
  local is_over = pending and pending.how and pending.fence == ''
  local may_wait = pending and pending.how and not pending.record
  local answer = 'W'
  if p.duplicate ~= 'p' then
    if is_over and broadcast_waits[id] then return 'd' end
    if not (may_wait and (is_over or p.duplicate == 'k')) then return 'r' end
    if not is_over then answer = 'I' end
  end
  local how, fence = pending and pending.how, pending and pending.fence or ''
  local new = {how = how, fence = fence, conditional = answer == 'I', deliver = p.deliver, due = p.due, record = record}
  pending_h[#pending_h + 1], pending_h[#pending_h + 2] = id, pending_text(new)
  return answer
end
local function add(id, p, record)
  if p.expires then record = stamped(record, p.expires) end
  local state = states[id]
  if (not state or state == 'f') and broadcast_waits[id] then state = 'd' end
  if state == 'r' then return over_run(id, p, record) end
  if state and state ~= 'f' and p.duplicate ~= 'p' then return state end
  put(id, p, record)
  return state and state ~= 'f' and string.upper(state) or 'A'
end
local answers, all_added, n = {}, true, 0
for i = 4, #ARGV, 3 do
  local p = parsed[ARGV[i + 1]] or parse(ARGV[i + 1])
  local answer = 'A'
  if p.is_plain then
    local id, k = ARGV[i], #z
    z[k + 1], z[k + 2], h[k + 1], h[k + 2] = p.text, id, id, ARGV[i + 2]
    if p.due < earliest then earliest = p.due end
  else
    answer = add(ARGV[i], p, ARGV[i + 2])
  end
  n = n + 1
  answers[n] = answer
  all_added = all_added and answer == 'A'
end
if #leaves > 0 then
  for _, place in ipairs({delayed, unacked, dead, done}) do write('ZREM', place, leaves) end
  write('HDEL', crashes, leaves)
  write('HDEL', pending_commands, leaves)
  write('HDEL', jobs, gone)
end
if #removed_broadcast > 0 then
  write('ZREM', broadcasts, removed_broadcast)
  write('HDEL', broadcast_jobs, removed_broadcast)
end
local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
write('HSET', jobs, h)
write('ZADD', delayed, z)
if #broadcast_z > 0 then
  local broadcast_head = redis.call('ZRANGE', broadcasts, 0, 0, 'WITHSCORES')[2]
  write('HSET', broadcast_jobs, broadcast_h)
  write('ZADD', broadcasts, broadcast_z)
  if not broadcast_head or earliest_broadcast < tonumber(broadcast_head) then
    local role = redis.call('HMGET', meta, 'publisher', 'publisher-until')
    signal('broadcast', role[1], role[2])
  end
end
write('HSET', pending_commands, pending_h)
if not known[1] then redis.call('HSET', meta, 'protocol', PROTOCOL) end
if retains == '1' and not known[3] then redis.call('HSET', meta, 'retains', 1) end
local answer = all_added and 'a*' or 'a' .. table.concat(answers)
keep(answer)
if #z > 0 and (not head or earliest < tonumber(head)) then signal('due', known[4], known[5]) end
return {'done', answer}

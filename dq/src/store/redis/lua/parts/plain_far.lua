--[[ plain_far: a plain batch that may have jobs which are due much later. Those are put into the tree of such jobs, the others into
`delayed`.

Needs    what `add` has
Returns  the answer of the step
Holds    rules 1, 2, 4, 18, 23: it reads each key before its first write
Cost     a job alone: HLEN, ZRANGE, HGET, two HSET, SET, where one in `delayed` needs ZRANGE, HSET, ZADD, SET. The first job to be due
         needs ZRANGE and HSET too
]]
local far_from, far_groups, far_fields, fields, queued, f, n = floor + FAR, {}, {}, {}, {}, 0, 0
local earliest, earliest_far, job = math.huge, math.huge, FIRST_JOB
for i = 6, 4 + 2 * groups, 2 do
  local time, behind = string.sub(ARGV[i], 4), job + 2 * ARGV[i + 1]
  local due = string.byte(ARGV[i], 3) ~= AT and after(time) or math.max(tonumber(time), floor)
  if due >= far_from then
    local prefix, ids = struct.pack('<I6', due), {}
    for at = job, behind - 2, 2 do
      ids[#ids + 1], far_fields[f + 1], far_fields[f + 2], f = ARGV[at], ARGV[at], prefix .. ARGV[at + 1], f + 2
    end
    far_groups[#far_groups + 1] = {due, ids}
    if due < earliest_far then earliest_far = due end
  else
    local due_text = int(due)
    for at = job, behind - 2, 2 do
      queued[n + 1], queued[n + 2], fields[n + 1], fields[n + 2], n = due_text, ARGV[at], ARGV[at], ARGV[at + 1], n + 2
    end
    if due < earliest then earliest = due end
  end
  job = behind
end
local head
if n > 0 or not far_at or earliest_far < (tonumber(far_at) or math.huge) then
  head = redis.call('ZRANGE', KEYS.delayed, 0, 0, 'WITHSCORES')[2]
  if priorities then
    -- include head.lua
  end
end
-- A job alone whose leaf has room needs nothing of the tree but that leaf.
local id, bound, leaf = far_fields[1], nil, nil
if f == 2 then
  bound = redis.call('ZRANGE', KEYS.far, string.format('[%015d', earliest_far) .. id, '-', 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
  leaf = redis.call('HGET', KEYS.far_leaves, bound or '')
elseif f > 0 then
  redis.call('ZCARD', KEYS.far)
  redis.call('HLEN', KEYS.far_leaves)
end
local size = leaf and string.byte(leaf, 3) or 67
if n > 0 then redis.call('HLEN', KEYS.jobs) end
if f > 0 then redis.call('HSET', KEYS.far_jobs, unpack(far_fields)) end
if size < 67 then
  redis.call('HSET', KEYS.far_leaves, bound, '\220\0' .. string.char(size + 1) .. string.sub(leaf, 4) .. cmsgpack.pack(id))
elseif f > 0 then
  -- include far.lua
  -- include put_far.lua
  for _, group in ipairs(far_groups) do put_far(group[1], group[2]) end
end
if n > 0 then
  redis.call('HSET', KEYS.jobs, unpack(fields))
  local entries = queued
  if string.find(flags, 'p', 1, true) then
    local list, from = fields, 1
    -- include scored.lua
  end
  redis.call('ZADD', KEYS.delayed, unpack(entries))
end
if history_setting or events then
  -- include recorder.lua
  for i = 1, n, 2 do note('a', queued[i], '', queued[i + 1]) end
  for _, group in ipairs(far_groups) do
    for _, far_id in ipairs(group[2]) do note('a', int(group[1]), '', far_id) end
  end
  keep_notes()
end
local answer = refused or 'a*'
-- include note.lua
-- include keep.lua
-- include news.lua
if come then
  -- include signal.lua
  signal('due', 'watcher', watcher, watcher_until, come)
end
do return answer end

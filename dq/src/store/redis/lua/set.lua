--[[ set: pauses or drains a topic, or pauses a group, ends that, or sets the default delay of the topic or one of its limits.

KEYS[1]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[2]  {app:topic}:meta            HASH     protocol, paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst
KEYS[3]  {app:topic}:wake            CHANNEL  signals for every node
KEYS[4]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[5]  {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
ARGV[1]  number of the call
ARGV[2]  the field: paused, draining, delay, or the name of a limit
ARGV[3]  - (it goes), '' (it has no value), +µs, ~µs or @ms (the end of a pause), or = and a value (a delay in ms, or the value of a limit)
ARGV[4]  BY:REASON, without blanks, `;` and further `:`
ARGV[5]  the group that is paused or resumed; '': the topic

Returns  {'done', answer}, {'kept', answer} or {'late'}. The answer is `s`, the field as it was, `;` and the field as it is, each empty
         where it is missing. A field is SINCE:VALUE:BY:REASON
Holds    rules 1, 18, 29: a pause that has ended by itself is none
Cost     O(1), and up to 200 groups where the number of their seats changes, up to 1,000 that wait where their rate does, or the seats of a group
         that is resumed
]]
-- include types.lua
local number, field, value, author, group, renews = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], true
-- include version.lua
-- include clock.lua
-- include calls.lua
local opens_groups = has_groups and (field == 'group_concurrency' or field == 'group_burst')
local tries_rates = has_groups and field == 'group_rate'
-- A key of a wrong type is found before the first write.
if opens_groups or tries_rates then redis.call('ZCARD', KEYS.grouped) end
local before, now = group == '' and redis.call('HGET', KEYS.meta, field) or '', ''
if group ~= '' then
  before = string.sub(redis.call('ZRANGE', KEYS.grouped, '[' .. group .. '\0v', '(' .. group .. '\0w', 'BYLEX', 'LIMIT', '0', '1')[1] or '', #group + 3)
end
local former = before
if field == 'paused' and before ~= '' then
  local ends_at = tonumber(string.match(before, '^%d+:(%d+):') or math.huge)
  if ends_at <= floor then before = '' end
end
if value ~= '-' then
  local kind, text = string.sub(value, 1, 1), string.sub(value, 2)
  if kind == '+' or kind == '~' then text = int(after(tonumber(text))) end
  -- Whoever changes a pause or the reason to drain leaves its beginning.
  local since = (field == 'paused' or field == 'draining') and string.match(before, '^%d+') or int(floor)
  now = since .. ':' .. text .. ':' .. author
end
if group ~= '' then
  -- include bulk.lua
  -- include metadata.lua
  -- include groups.lua
  seating.set_pause(group, former, now)
  if now == '' then seating.open(group, micros) end
else
  redis.call('HDEL', KEYS.meta, field)
  if now ~= '' then redis.call('HSET', KEYS.meta, field, now) end
end
if not protocol then redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL) end
local answer = 's' .. before .. ';' .. now
-- include keep.lua
if opens_groups then
  redis.call('HDEL', KEYS.meta, 'groups-at')
  -- include bulk.lua
  -- include open_groups.lua
end
if tries_rates then
  -- The next claims find out when the groups open that wait for the rate.
  -- include bulk.lua
  local waiting, tried = redis.call('ZRANGE', KEYS.grouped, '[\0' .. '4', '(\0' .. '5', 'BYLEX', 'LIMIT', '0', '1000'), {}
  for i, entry in ipairs(waiting) do
    local time, name = string.sub(entry, 3, 18), string.sub(entry, 19)
    tried[4 * i - 3], tried[4 * i - 2], tried[4 * i - 1], tried[4 * i] = '0', '\0' .. '5' .. time .. name, '0', '\0' .. '4' .. string.format('%016d', micros) .. name
  end
  write('ZREM', KEYS.grouped, waiting)
  write('ZADD', KEYS.grouped, tried)
end
if field ~= 'delay' then redis.pcall('PUBLISH', KEYS.wake, field == 'paused' and group == '' and now ~= '' and 'paused' or 'state') end
return {'done', answer}

--[[ set: pauses or drains a topic, ends that, or sets its default delay, or how many of its jobs run at a time.

KEYS[1]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[2]  {app:topic}:meta            HASH     protocol, paused, draining, delay, concurrency
KEYS[3]  {app:topic}:wake            CHANNEL  signals for every node
ARGV[1]  number of the call
ARGV[2]  paused, draining, delay or concurrency: the field
ARGV[3]  - (it goes), '' (it has no number), +µs or @ms (the end of a pause), or =n (a delay in ms, or a number of jobs)
ARGV[4]  BY:REASON, without blanks, `;` and further `:`

Returns  {'done', answer}, {'kept', answer} or {'late'}. The answer is `s`, the field as it was, `;` and the field as it is, each empty
         where it is missing. A field is SINCE:NUMBER:BY:REASON
Holds    rules 1, 18, 29: a pause that has ended by itself is none
Cost     O(1)
]]
-- include types.lua
local number, field, value, author, renews = ARGV[1], ARGV[2], ARGV[3], ARGV[4], true
-- include version.lua
-- include clock.lua
-- include calls.lua
local before, now = redis.call('HGET', meta, field) or '', ''
if field == 'paused' and before ~= '' then
  local ends_at = tonumber(string.match(before, '^%d+:(%d+):') or math.huge)
  if ends_at <= floor then before = '' end
end
if value ~= '-' then
  local kind, time = string.sub(value, 1, 1), tonumber(string.sub(value, 2)) or ''
  if kind == '+' then time = after(time) end
  -- Whoever changes a pause or the reason to drain leaves its beginning.
  local since = (field == 'paused' or field == 'draining') and string.match(before, '^%d+') or int(floor)
  now = since .. ':' .. (time == '' and '' or int(time)) .. ':' .. author
end
redis.call('HDEL', meta, field)
if now ~= '' then redis.call('HSET', meta, field, now) end
if not protocol then redis.call('HSET', meta, 'protocol', PROTOCOL) end
local answer = 's' .. before .. ';' .. now
-- include keep.lua
if field ~= 'delay' then redis.pcall('PUBLISH', wake, field == 'paused' and now ~= '' and 'paused' or 'state') end
return {'done', answer}

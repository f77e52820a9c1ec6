--[[ page: reads a page of one place, in order of time, then id. Reads only.

KEYS[1]  {app:topic}:jobs     HASH  job id -> record
KEYS[2]  {app:topic}:delayed  ZSET  job id -> ms; or unacked, dead, done
ARGV[1]  limit, 1..=1000
ARGV[2]  time of the cursor, ms; '' for the first page
ARGV[3]  id of the cursor

Returns  {ids, times ms, records, more}
Holds    section 3.3: the page continues behind the cursor even if that job is gone
Cost     O(limit + log² n)
]]
-- include types.lua
local jobs, place = KEYS[1], KEYS[2]
local limit, cursor_time, cursor_id = tonumber(ARGV[1]), ARGV[2], ARGV[3]
-- include bulk.lua
-- Whether a comes before b, byte by byte, as the server sorts them. Lua's own `<` depends on the locale.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local function first_rank()
  if cursor_time == '' then return 0 end
  local low = redis.call('ZCOUNT', place, '-inf', '(' .. cursor_time)
  local high = redis.call('ZCOUNT', place, '-inf', cursor_time)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(cursor_id, redis.call('ZRANGE', place, middle, middle)[1]) then high = middle else low = middle + 1 end
  end
  return low
end
local first = first_rank()
local found, ids, times = redis.call('ZRANGE', place, first, first + limit - 1, 'WITHSCORES'), {}, {}
for i = 1, #found / 2 do
  ids[i], times[i] = found[2 * i - 1], tonumber(found[2 * i])
end
return {ids, times, read('HMGET', jobs, ids), redis.call('ZCARD', place) > first + #ids and 1 or 0}

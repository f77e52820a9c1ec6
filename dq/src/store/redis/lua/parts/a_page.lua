--[[ a_page: reads a page of a place, in order of time, then id. It begins behind the cursor, even if the job of the cursor is gone.

Needs    the keys and arguments of `page`; answer_of(ids, times, records, overrides, more)
Returns  the answer of the step
Holds    rule 5
Cost     two ZCOUNT, and one ZRANGE per halving of the jobs that have the time of the cursor; O(limit) for the page
]]
local place, limit, cursor_time, cursor_id, most = delayed, tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include bulk.lua
-- include order.lua
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
if ARGV[5] == 'd' and redis.call('EXISTS', far_jobs) == 1 then
  -- rare merge.lua
end
for i = 1, #found / 2 do
  ids[i], times[i] = found[2 * i - 1], tonumber(found[2 * i])
end
for i = fitting({jobs, metadata}, ids, most) + 1, #ids do ids[i] = nil end
local more = redis.call('ZCARD', place) > first + #ids and 1 or 0
do return answer_of(ids, times, read('HMGET', jobs, ids), read('HMGET', metadata, ids), more) end

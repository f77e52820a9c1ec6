--[[ rank: finds where a page of a place begins.

Needs    place; cursor_time ('' for the first page), cursor_id; order
Gives    first_rank(): the rank of the first job behind the cursor, even if the job of the cursor is gone
Cost     two ZCOUNT, and one ZRANGE per halving of the jobs that have the time of the cursor
]]
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

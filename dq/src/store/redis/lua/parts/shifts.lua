--[[ shifts: what is added to due times in `delayed`, for queries.

Needs    delayed; PRIORITY, which the loader writes
Gives    shifts: of the normal priority, and of the others if there is such a job; then of the same behind these, if a job is blocked by its group
Cost     one ZRANGE
]]
local shifts, last = {0}, redis.call('ZRANGE', KEYS.delayed, '-1', '-1', 'WITHSCORES')[2]
if last and tonumber(last) >= PRIORITY then shifts = {0, PRIORITY, 2 * PRIORITY} end
if last and tonumber(last) >= 3 * PRIORITY then
  for n = 3, 5 do shifts[n + 1] = n * PRIORITY end
end

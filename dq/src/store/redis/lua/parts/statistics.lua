--[[ statistics: counts what a step does, in the minute of the store's clock (rule 33). Only the scripts of links that count have it.

A minute has the slot `minute mod 1440`, and takes it from the minute of the day before. Its value is SHAPE: the minute; how many jobs
were claimed; how many runs ended, how many of them with an ack, and how many failed; how many jobs became DEAD; how late the claimed
jobs were in sum and at most, ms; and how many were late up to each time in LATE, and later. `store/statistics.rs` reads it.

Needs    statistics, which the loader writes; clock
Gives    count(at, number): adds to a number of the minute, 2 claimed, 3 ran, 4 done, 5 failed, 6 dead. count_claims(late, jobs).
         keep_statistics(): writes the minute, if the step counted anything
Holds    rules 1, 33: it reads its key before the first write of the step
Cost     one HGET, and one HSET if the step counted anything; EXPIRE with the first step of a minute
]]
local SHAPE, SHAPE_BYTES, LATE = '<I4I4I4I4I4I4I8I6I4I4I4I4I4I4I4I4', 70, {10, 100, 1000, 10000, 60000, 600000, 3600000}
local MOST_LATE, MOST_SUM = 281474976710655, 9007199254740991
local minute, has_counted = math.floor(floor / 60000), false
local slot = string.format('%d', minute % 1440)
local in_slot = redis.call('HGET', statistics, slot)
local of_minute = in_slot and #in_slot == SHAPE_BYTES and {struct.unpack(SHAPE, in_slot)}
local is_new_minute = not of_minute or of_minute[1] ~= minute
if is_new_minute then of_minute = {minute, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} end
local function count(at, number)
  if number == 0 then return end
  of_minute[at], has_counted = of_minute[at] + number, true
end
local function count_claims(late, jobs)
  local at = 9
  while at < 16 and late > LATE[at - 8] do at = at + 1 end
  count(2, jobs)
  count(at, jobs)
  of_minute[7] = math.min(of_minute[7] + late * jobs, MOST_SUM)
  of_minute[8] = math.min(math.max(of_minute[8], late), MOST_LATE)
end
local function keep_statistics()
  if not has_counted then return end
  redis.call('HSET', statistics, slot, struct.pack(SHAPE, unpack(of_minute, 1, 16)))
  if is_new_minute then redis.call('EXPIRE', statistics, 90000) end
end

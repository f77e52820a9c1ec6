--[[ ticks: in a topic whose gates may hold jobs back, claims the schedules that are due before all jobs, and in a transfer of their own, which
concerns no gate. Otherwise the limits say how many jobs may be.

Needs    ticks, delayed, jobs, far_jobs; reach, lookahead, limit, opens_at, drained_at; choose: nil; limited, shut, and what else the part `limits` needs; PRIORITY, which the loader writes; clock
Gives    choose: gives the schedules that are due, if there are any, as the part `claim` has it; then limited and shut are nil. next_tick: when the watcher
         comes for the next one, ms, or nil. And what the part `limits` gives
Holds    rules 29, 30: `ticks` is a hint, so nothing is wrong without it, and a tick that it does not have waits like a job
Cost     one ZRANGE; where one is due, two more, a ZMSCORE member for each, and one or two commands for each that was changed or does not wait
]]
local first = redis.pcall('ZRANGE', KEYS.ticks, '0', '0', 'WITHSCORES')
if first[2] and tonumber(first[2]) <= reach then
  local waiting = redis.call('ZRANGE', KEYS.ticks, '-inf', int(reach), 'BYSCORE', 'LIMIT', '0', '1000')
  local places, due, due_times = redis.call('ZMSCORE', KEYS.delayed, unpack(waiting)), {}, {}
  for i, id in ipairs(waiting) do
    local at = places[i] and tonumber(places[i]) % PRIORITY
    if at and at > reach then
      redis.pcall('ZADD', KEYS.ticks, int(at), id)
    elseif at and #due < tonumber(limit) then
      due[#due + 1] = id
      due_times[2 * #due - 1], due_times[2 * #due] = id, int(at)
    elseif not at and redis.call('HEXISTS', KEYS.jobs, id) + redis.call('HEXISTS', KEYS.far_jobs, id) == 0 then
      redis.pcall('ZREM', KEYS.ticks, id)
    end
  end
  first = redis.call('ZRANGE', KEYS.ticks, '(' .. int(reach), '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')
  if due[1] then
    local members = {unpack(due)}
    choose = function() return due, due_times, members, false end
  end
end
if first[2] and not opens_at and not drained_at then next_tick = tonumber(first[2]) - math.ceil(lookahead / 2) end
if limited then
  -- rare limits.lua
end
-- The rate learns of ticks, which spend nothing: without a time of its own it would count from their fence.
if choose then limited, shut = nil, nil end

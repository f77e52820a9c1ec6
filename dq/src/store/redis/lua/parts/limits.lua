--[[ limits: takes no more jobs than may be RUNNING on all nodes together, and than the rate lets come. A job is RUNNING if it has a record
and no place, so the number is never wrong for longer than a step: whatever ends a run gives its slot back. The rate follows
`store/rate.rs`, which names the algorithm.

Needs    limited: whether there is a limit; concurrency, rate, opens, last_fence: fields of meta; ARGV[#ARGV - 1], ARGV[#ARGV]: what the code of
         the node says of both; limit, latest; jobs, delayed, unacked, dead, done
Gives    limited: how many may be RUNNING, or nil; in_runs: how many are; next_claim(n, ids): when the rate lets another job come once the first n of these
         ids are claimed now, in µs, or nil. The tick of a schedule spends nothing. It is written also where nothing is claimed: a time that is too far away, as after a clock that
         jumped back, is cut once. limit and latest: no more than there is room for
Holds    rule 29
Cost     one HLEN, four ZCARD, where there is a number of slots
]]
limited = tonumber(string.match(concurrency or '', '^%d+:(%d+):') or ARGV[#ARGV - 1])
limit = tonumber(limit)
if limited > 0 then
  in_runs = redis.call('HLEN', jobs)
  for _, other in ipairs({delayed, unacked, dead, done}) do in_runs = in_runs - redis.call('ZCARD', other) end
  in_runs = math.max(in_runs, 0)
  limit = math.min(limit, limited - in_runs)
else
  limited = nil
end
local most_jobs, period, burst = string.match(rate and string.match(rate, '^%d+:([%d/]+):') or ARGV[#ARGV], '^(%d+)/(%d+)/(%d+)$')
if most_jobs then
  local per = period * 1005
  local interval = math.ceil(per / most_jobs)
  local from = micros - period * 5 - math.floor(burst * per / most_jobs)
  from = math.min(math.max(tonumber(opens or (last_fence or 0) + interval), from), micros + interval)
  limit = math.min(limit, micros < from and 0 or math.floor((micros - from) * most_jobs / per) + 1)
  function next_claim(n, ids)
    if n > 32 then ids = cmsgpack.unpack(ids) end
    local spent = n
    for i = 1, n do
      if string.sub(ids[i], 1, 12) == 'dq:schedule:' then spent = spent - 1 end
    end
    return from + math.ceil(spent * per / most_jobs)
  end
end
limit = math.max(limit, 0)
if limit == 0 then latest = -1 end
limit = int(limit)

--[[ limits: takes no more jobs than may be RUNNING on all nodes together, and than the rate lets come. A job is RUNNING if it has a record
and no place, so the number is never wrong for longer than a step: whatever ends a run gives its slot back. The rate follows
`store/rate.rs`, which names the algorithm.

Needs    limited: whether there is a limit; concurrency, rate, opens, last_fence: fields of meta; ARGV[#ARGV - 1], ARGV[#ARGV]: what the code of
         the node says of both; limit, latest; jobs, delayed, unacked, dead, done
Gives    limited: how many may be RUNNING, or nil; in_runs: how many are; pace, or nil without a rate. pace.may_start(spent, weight): whether a job of this weight
         may be claimed behind others that spend so much; pace.weights: of the ids that may be claimed; pace.refused: the weight of the job behind them that may
         not, or nil; pace.next(n, ids): when the rate lets a job of weight 1 come once these are claimed now, and when the next one, in µs.
         limit and latest: no more than there is room for
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
  local last = math.min(tonumber(opens or (last_fence or 0) + interval), micros + interval)
  from = math.max(last, from)
  local room = micros < from and 0 or math.floor((micros - from) * most_jobs / per) + 1
  limit = math.min(limit, room)
  local function time_of(units) return math.ceil(units * per / most_jobs) end
  pace = {weights = {}}
  function pace.may_start(spent, weight) return spent + weight <= room or spent == 0 and micros >= last + time_of(weight - 1) end
  function pace.next(n, ids)
    local spent = 0
    for i = 1, n do spent = spent + pace.weights[ids[i]] end
    -- More than there is room for has waited as long as it is heavy.
    local begin = spent == 0 and last or spent > room and math.max(last, micros - time_of(spent - 1)) or from
    local next_at = begin + time_of(spent)
    return next_at, next_at + (pace.refused and time_of(pace.refused - 1) or 0)
  end
end
limit = math.max(limit, 0)
if limit == 0 then latest = -1 end
limit = int(limit)

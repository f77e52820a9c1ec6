--[[ limits: takes no more jobs than may be RUNNING on all nodes together, and than the rate lets come. A job is RUNNING if it has a record
and no place, so the number is never wrong for longer than a step: whatever ends a run gives its slot back.

Needs    limited: whether there is a limit; concurrency, rate, opens, last_fence: fields of meta; ARGV[#ARGV - 1], ARGV[#ARGV]: what the code of
         the node says of both; limit, latest; jobs, delayed, unacked, dead, done
Gives    limited: how many may be RUNNING, or nil; in_runs: how many are; pace, or nil without a rate: as the part `pace` has it, with weights: of the ids that
         may be claimed, and refused: the weight of the job behind them that may not, or nil.
         limit and latest: no more than there is room for
Holds    rule 29
Cost     one HLEN, four ZCARD, where there is a number of slots
]]
limited = tonumber(string.match(concurrency or '', '^%d+:(%d+):') or ARGV[#ARGV - 1])
limit = tonumber(limit)
if limited > 0 then
  in_runs = redis.call('HLEN', KEYS.jobs)
  for _, other in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done}) do in_runs = in_runs - redis.call('ZCARD', other) end
  in_runs = math.max(in_runs, 0)
  limit = math.min(limit, limited - in_runs)
else
  limited = nil
end
-- include pace.lua
pace = pace_of(rate and string.match(rate, '^%d+:([%d/]+):') or ARGV[#ARGV], tonumber(opens or nil), tonumber(last_fence or '') or 0)
if pace then limit, pace.weights = math.min(limit, pace.room), {} end
limit = math.max(limit, 0)
if limit == 0 then latest = -1 end
limit = int(limit)

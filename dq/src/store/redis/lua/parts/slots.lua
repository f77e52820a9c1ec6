--[[ slots: takes no more jobs than may be RUNNING on all nodes together. A job is RUNNING if it has a record and no place, so the
number is never wrong for longer than a step: whatever ends a run gives its slot back.

Needs    concurrency: the field of meta; ARGV[#ARGV]: what the code of the node says; limit, latest; jobs, delayed, unacked, dead, done
Gives    together: how many may be RUNNING; in_runs: how many are; limit and latest: no more than there are slots
Holds    rule 29
Cost     one HLEN, four ZCARD
]]
together = tonumber(string.match(concurrency or '', '^%d+:(%d+):') or ARGV[#ARGV])
if together > 0 then
  in_runs = redis.call('HLEN', jobs)
  for _, other in ipairs({delayed, unacked, dead, done}) do in_runs = in_runs - redis.call('ZCARD', other) end
  in_runs = math.max(in_runs, 0)
  limit = math.max(math.min(limit, together - in_runs), 0)
  if limit == 0 then latest = -1 end
  limit = int(limit)
else
  together = nil
end

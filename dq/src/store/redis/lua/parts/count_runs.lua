--[[ count_runs: counts the runs that a settle ended, by their outcomes. A rollback is no run, and neither is the end of a job that
expired before it could run.

Needs    plain, planned, acks, at; metadata, statistics
Holds    rules 10, 33: a stale outcome is not counted
Cost     that of `statistics`
]]
do
  local EXPIRED = 6
  count(3, #plain)
  count(4, #plain)
  for _, i in ipairs(planned) do
    local outcome, failed = i > acks and ARGV[at[i] + 2] or 'a', ''
    if outcome == 'x' then failed = split(ARGV[at[i] + 4]).failed end
    if failed ~= '' and bit.band(string.byte(failed, 3), 127) == EXPIRED then outcome = 'b' end
    if outcome ~= 'b' and outcome ~= 'd' then count(3, 1) end
    if outcome == 'a' then count(4, 1) end
    if outcome == 'r' or outcome == 'x' then count(5, 1) end
  end
  keep_statistics()
end

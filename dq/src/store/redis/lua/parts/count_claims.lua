--[[ count_claims: counts what was claimed because it was due, and how late: from due to claim.

Needs    claimed, tokens; statistics
Holds    rule 33
Cost     that of `statistics`
]]
for run = 1, #tokens, 2 do
  count_claims(math.max(floor - string.match(tokens[run], '%d+$'), 0), tokens[run + 1])
end
keep_statistics()

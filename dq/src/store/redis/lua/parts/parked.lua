--[[ parked: of the oldest aged UNACKED jobs takes those whose group neither is paused nor has spent its rate.

Needs    place, latest, limit, MAX_PARKED: it looks at no more jobs; group_rate: field of meta; ARGV[10]: the rate of each group, as the code of the
         node says, or empty; clock, metadata, overrides, groups
Gives    choose, for the part `claim`: ids; scores: their times, each behind an id; members: the same ids. Each spends the rate of its group, also
         where the claim then has no room for its bytes. of_paused: of how many jobs the group is paused
Holds    rules 4, 25, 29
Cost     ZRANGE, and what `metadata_of` costs for all of these jobs; per group up to two ZRANGE
]]
function choose()
  local call, format = redis.call, string.format
  local aged, times, chosen, scores, group_rates = {}, {}, {}, {}, nil
  local found = latest >= 0 and call('ZRANGE', place, '-inf', int(latest), 'BYSCORE', 'LIMIT', '0', int(MAX_PARKED), 'WITHSCORES') or {}
  for i = 1, #found / 2 do aged[i], times[i] = found[2 * i - 1], found[2 * i] end
  local rate_of_groups = string.match(group_rate and string.match(group_rate, '^%d+:([%d/]+):') or ARGV[10], '^%d+/%d+/%d+$')
  if rate_of_groups then
    -- rare group_rate.lua
    group_rates = rates
  end
  for i, text in ipairs(metadata_of(aged)) do
    local name, n = text and seating.group_of(text), #chosen
    if n >= tonumber(limit) then break end
    local pause = name and seating.pause_of(name)
    if pause and tonumber(string.match(pause, '^%d+:(%d+):') or math.huge) > floor then
      of_paused = of_paused + 1
    elseif not (name and group_rates and group_rates.starts(name, text)) then
      chosen[n + 1], scores[2 * n + 1], scores[2 * n + 2] = aged[i], aged[i], times[i]
      if name and group_rates then group_rates.spend(name, text) end
    end
  end
  if group_rates then group_rates.write() end
  return chosen, scores, {unpack(chosen)}
end

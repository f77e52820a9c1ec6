--[[ ranked: the due jobs of a topic with priorities, in the order in which they are claimed: by due time, but those of normal jobs
count `ageing` later than they are, and those of low ones twice that.

Needs    place, latest, limit; ageing, ms; call and format of the part `claim`; PRIORITY, which the loader writes; clock
Gives    ids; scores: their due times, each behind an id; members: the ids, as they leave the place; is_short: false
Holds    rule 4: only due jobs compete
Cost     three ZRANGE of `limit` entries each at most
]]
ids, scores, members, is_short = {}, {}, {}, false
if latest >= 0 then
  local parts, most_ids = {}, tonumber(limit)
  for n, shift in ipairs({PRIORITY, 0, 2 * PRIORITY}) do
    local from, to = shift > 0 and int(shift) or '-inf', int(shift + latest)
    local found = call('ZRANGE', place, from, to, 'BYSCORE', 'LIMIT', '0', limit, 'WITHSCORES')
    parts[n] = {found = found, at = 0, shift = shift, later = (n - 1) * ageing}
  end
  local function next_of(part)
    part.at = part.at + 2
    part.due = part.found[part.at] and tonumber(part.found[part.at]) - part.shift
  end
  for _, part in ipairs(parts) do next_of(part) end
  while #ids < most_ids do
    local first
    for _, part in ipairs(parts) do
      if part.due and (not first or part.due + part.later < first.due + first.later) then first = part end
    end
    if not first then break end
    local count = #ids + 1
    ids[count], members[count] = first.found[first.at - 1], first.found[first.at - 1]
    scores[2 * count - 1], scores[2 * count] = ids[count], int(first.due)
    next_of(first)
  end
end

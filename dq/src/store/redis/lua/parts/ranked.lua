--[[ ranked: the due jobs of a topic with priorities, in the order in which they are claimed: by due time, or by the turn of their group
where they stand at one; but those of normal jobs count `ageing` later than they are, and those of low ones twice that. Those of groups that borrow
come after all others.

Needs    place, latest, limit; ageing, ms; has_groups: field of meta; grouped; call and format of the part `claim`; PRIORITY, which the loader writes; clock
Gives    ids; scores: their due times, each behind an id; members: the ids, as they leave the place; their_turns: the turns of those that stand at
         one, or nil; is_short: false; pauses: nil, or what the part `pauses` gives
Holds    rule 4: only due jobs compete
Cost     three ZRANGE of `limit` entries each at most; one more if there are groups, and six more and a ZMSCORE member a job if one has a turn or is paused, and
         one more if one borrows
]]
ids, scores, members, is_short = {}, {}, {}, false
if latest >= 0 then
  local parts, most_ids, last = {}, tonumber(limit), has_groups and call('ZRANGE', KEYS.grouped, '(\0' .. '8', '[\0' .. '0', 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
  -- The entries of pauses and rates are behind those of turns.
  if last and string.byte(last, 2) > 50 then
    -- rare pauses.lua
  end
  for n, shift in ipairs({PRIORITY, 0, 2 * PRIORITY}) do
    local from, to = shift > 0 and int(shift) or '-inf', int(shift + latest)
    local found = call('ZRANGE', place, from, to, 'BYSCORE', 'LIMIT', '0', limit, 'WITHSCORES')
    parts[n] = {found = found, at = 0, shift = shift, later = (n - 1) * ageing}
  end
  if last then
    their_turns = {}
    for n, digit in ipairs({'1', '0', '2', string.byte(last, 2) == 55 and '7' or nil}) do
      local entries = call('ZRANGE', KEYS.grouped, '[\0' .. digit, '(\0' .. digit + 1, 'BYLEX', 'LIMIT', '0', limit)
      local waiting, found, turns = {}, {}, {}
      for i, entry in ipairs(entries) do waiting[i] = string.sub(entry, 19) end
      local places = #entries > 0 and call('ZMSCORE', place, unpack(waiting)) or {}
      for i, entry in ipairs(entries) do
        local at = tonumber(places[i] or nil)
        if at and at >= 3 * PRIORITY and tonumber(string.sub(entry, 3, 18)) then
          found[#found + 1], found[#found + 2], turns[#turns + 1] = waiting[i], at % PRIORITY, string.sub(entry, 2, 18)
        else
          -- Another program has moved the job, or made the entry.
          call('ZREM', KEYS.grouped, entry)
        end
      end
      parts[3 + n] = {found = found, turns = turns, at = 0, shift = 0, later = n < 4 and (n - 1) * ageing or 1e15}
    end
  end
  local function next_of(part)
    part.at = part.at + 2
    part.due = part.found[part.at] and tonumber(part.found[part.at]) - part.shift
    part.turn = part.due and part.turns and part.turns[part.at / 2]
    part.goes = part.due and (part.turn and tonumber(string.sub(part.turn, 2)) or part.due * 1000) + part.later * 1000
  end
  for _, part in ipairs(parts) do next_of(part) end
  while #ids < most_ids do
    local first
    for _, part in ipairs(parts) do
      if part.due and (not first or part.goes < first.goes) then first = part end
    end
    if not first then break end
    local count = #ids + 1
    ids[count], members[count] = first.found[first.at - 1], first.found[first.at - 1]
    scores[2 * count - 1], scores[2 * count] = ids[count], int(first.due)
    if their_turns then their_turns[count] = first.turn end
    next_of(first)
  end
end

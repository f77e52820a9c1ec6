--[[ group_waiting: how many jobs wait in the groups of a batch. A far job has not joined its group, so a job whose group has a limit does not wait
among the far ones.

Needs    bound, of the part `waiting`; number (text), the first argument; groups; clock
Gives    bound.count_in(text, more): so many jobs more of the group that this metadata or record names wait without a seat; how many do, and the
         name, or nil. bound.full_group(i, record): what to answer to one more with the options in ARGV[i] if there is no room, or nil
Holds    rule 29: follow-ups pass
Cost     per group one ZLEXCOUNT
]]
local counted = {}
function bound.count_in(text, more)
  local name = seating.group_of(text)
  if not name then return nil end
  counted[name] = (counted[name] or redis.call('ZLEXCOUNT', KEYS.grouped, '[' .. name .. '\0w', '(' .. name .. '\0x')) + more
  return counted[name]
end
function bound.full_group(i, record)
  local limit = ARGV[1] == number and bound.of_groups[i]
  local waits = limit and bound.count_in(record, 0)
  if waits and waits >= limit then return 'G' .. int(waits) .. ',' .. int(limit) .. ';' end
end

--[[ pages: a page of DELAYED in order of time while it has jobs of several priorities.

Needs    place, shifts, limit, cursor_time, cursor_id; rank_of and int, as `page` has them; order
Gives    first: how many entries of the place are before the page; found: its ids, each with its due time
Cost     what a page costs, for each priority
]]
first, found = 0, {}
local entries = {}
for _, shift in ipairs(shifts) do
  local from, to = shift > 0 and int(shift) or '-inf', '(' .. int(shift + PRIORITY)
  local before = shift > 0 and redis.call('ZCOUNT', place, '-inf', '(' .. from) or 0
  local rank = cursor_time == '' and before or rank_of(shift)
  first = first + rank - before
  local count = math.min(limit, before + redis.call('ZCOUNT', place, from, to) - rank)
  local part = count > 0 and redis.call('ZRANGE', place, rank, rank + count - 1, 'WITHSCORES') or {}
  for i = 1, #part, 2 do entries[#entries + 1] = {id = part[i], due = tonumber(part[i + 1]) - shift} end
end
table.sort(entries, function(a, b) return a.due < b.due or a.due == b.due and is_before(a.id, b.id) end)
for i = 1, math.min(limit, #entries) do found[2 * i - 1], found[2 * i] = entries[i].id, entries[i].due end

--[[ head: the earliest due time in `delayed` while it has jobs of several priorities, or the earliest turn of a group, which is never later than now.

Needs    head, which it replaces; delayed; grouped, if there are groups; has_groups: field of meta; PRIORITY, which the loader writes; clock
Gives    head: ms, or nil
Cost     three ZRANGE, and one if there are groups, or four if one has a turn and none borrows
]]
head = nil
for shift = 0, 2 * PRIORITY, PRIORITY do
  local from, to = shift > 0 and int(shift) or '-inf', '(' .. int(shift + PRIORITY)
  local first = redis.call('ZRANGE', KEYS.delayed, from, to, 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')[2]
  if first then head = math.min(head or math.huge, tonumber(first) - shift) end
end
if has_groups then
  local last = redis.call('ZRANGE', KEYS.grouped, '(\0' .. '8', '[\0' .. '0', 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
  if last and string.byte(last, 2) == 55 then
    head = math.min(head or floor, floor)
  elseif last then
    for digit = 0, 2 do
      local turn = redis.call('ZRANGE', KEYS.grouped, '[\0' .. digit, '(\0' .. digit + 1, 'BYLEX', 'LIMIT', '0', '1')[1]
      if turn then head = math.min(head or floor, floor, math.floor((tonumber(string.sub(turn, 3, 18)) or micros) / 1000)) end
    end
  end
end

--[[ head: the earliest due time in `delayed` while it has jobs of several priorities.

Needs    head, which it replaces; delayed; PRIORITY, which the loader writes; clock
Gives    head: ms, or nil
Cost     three ZRANGE
]]
head = nil
for shift = 0, 2 * PRIORITY, PRIORITY do
  local from, to = shift > 0 and int(shift) or '-inf', '(' .. int(shift + PRIORITY)
  local first = redis.call('ZRANGE', delayed, from, to, 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')[2]
  if first then head = math.min(head or math.huge, tonumber(first) - shift) end
end

--[[ open_groups: lets the first job of up to 200 groups come, and continues behind them the next time. So a group goes on whose limit was raised,
or of which another program has taken something away; a claim blocks the jobs again that have no seat.

Needs    meta, delayed, grouped; clock, bulk
Gives    a signal, if the head is earlier now
Holds    rules 4, 23
Cost     two ZRANGE and a ZSCORE for each group
]]
-- include metadata.lua
-- include groups.lua
local before, at = seating.head() or math.huge, redis.call('HGET', KEYS.meta, 'groups-at') or ''
local from = at == '' and '[\1' or '(' .. at .. '\1'
for _ = 1, 200 do
  local entry = redis.call('ZRANGE', KEYS.grouped, from, '+', 'BYLEX', 'LIMIT', '0', '1')[1]
  if not entry then
    at = ''
    break
  end
  -- What another program wrote may have no name.
  local name = string.match(entry, '^(.-)%z')
  if name then
    at, from = name, '(' .. name .. '\1'
    seating.let_next(name, micros)
  else
    from = '(' .. entry
  end
end
redis.call('HSET', KEYS.meta, 'groups-at', at)
if redis.call('EXISTS', KEYS.grouped) == 0 then
  for _, id in ipairs(redis.call('ZRANGE', KEYS.delayed, int(seating.BLOCKED), '+inf', 'BYSCORE', 'LIMIT', '0', '1000')) do seating.shift(id, false) end
end
if (seating.head() or math.huge) < before then redis.pcall('PUBLISH', string.sub(KEYS.meta, 1, -5) .. 'wake', 'due') end

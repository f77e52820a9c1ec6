--[[ keep: keeps the answer of this batch for its repeats. No function, because making one costs as much as a command.

Needs    calls; number (text); answer; renews: whether the key lives for an hour from now; the part `calls`
Holds    rule 18
Cost     one SET, which is twice as fast where it leaves the time of expiry as it is
]]
if ARGV[1] ~= number then
  -- The position of an outbox, which is kept for ever (rule 18).
  redis.call('SET', KEYS.calls, string.match(ARGV[1], '^[^<]+') .. (answer == 'a*' and '' or ' ' .. number % 16 .. '=' .. number .. ':' .. answer))
else
  for passed = math.max(high + 1, number - 15), number - 1 do
    local slot, last = ' ' .. passed % 16 .. '=', high - (high - passed) % 16
    if not string.find(others, slot, 1, true) then others = others .. slot .. (last > 0 and last .. ':a*' or '-') end
  end
  if others ~= '' or answer ~= 'a*' then
    local slot = ' ' .. number % 16 .. '='
    local from = string.find(others, slot, 1, true)
    local behind = from and (string.find(others, ' ', from + 1, true) or #others + 1)
    if from then others = string.sub(others, 1, from - 1) .. string.sub(others, behind) end
    if answer ~= 'a*' then others = others .. slot .. number .. ':' .. answer end
  end
  if renews or not kept then
    redis.call('SET', KEYS.calls, number .. others, 'EX', 3600)
  else
    redis.call('SET', KEYS.calls, number .. others, 'KEEPTTL')
  end
end

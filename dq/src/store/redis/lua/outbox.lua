--[[ outbox: says what waits in an outbox, target by target.

KEYS[1]  {app:topic}:outbox  ZSET  entries, as the part `entries` has them, all with score 0
ARGV[1]  the target behind which it begins; '' for the first one
ARGV[2]  the most targets

Returns  of each {target, how many entries wait, when the first of them was written in µs, the position of the one before it}
Holds    rules 1, 18: what is no entry is passed over
Cost     O(targets log n): a ZRANGE and a ZLEXCOUNT for each target
]]
-- include entries.lua
local answer, limit, from, left = {}, tonumber(ARGV[2]), ARGV[1] == '' and '-' or '[' .. ARGV[1] .. string.char(1), 2000
while #answer < limit and left > 0 do
  local first = redis.call('ZRANGE', KEYS.outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target, position = target_of(first)
  if target then
    local behind, before, written = target .. string.char(1), before_of(first)
    local waiting = redis.call('ZLEXCOUNT', KEYS.outbox, '[' .. first, '(' .. behind)
    answer[#answer + 1] = {target, waiting, tonumber(written or '') or tonumber(position), before or '0'}
    from = '[' .. behind
  else
    from, left = '(' .. first, left - 1
  end
end
return answer

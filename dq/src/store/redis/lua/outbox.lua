--[[ outbox: says what waits in an outbox, target by target.

KEYS[1]  {app:topic}:outbox  ZSET  target, NUL, position (16 digits), NUL, position before it, NUL, follow-ups; all with score 0
ARGV[1]  the target behind which it begins; '' for the first one
ARGV[2]  the most targets

Returns  {target, how many entries wait, the first of their positions, ...}
Holds    rules 1, 18: what is no entry is passed over
Cost     O(targets log n)
]]
-- include entries.lua
local answer, limit, from, left = {}, tonumber(ARGV[2]), ARGV[1] == '' and '-' or '[' .. ARGV[1] .. string.char(1), 2000
while #answer < 3 * limit and left > 0 do
  local first = redis.call('ZRANGE', outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target, position = target_of(first)
  if target then
    local behind = target .. string.char(1)
    answer[#answer + 1] = target
    answer[#answer + 1] = redis.call('ZLEXCOUNT', outbox, '[' .. first, '(' .. behind)
    answer[#answer + 1] = tonumber(position)
    from = '[' .. behind
  else
    from, left = '(' .. first, left - 1
  end
end
return answer

--[[ outbox: says what waits in an outbox, target by target.

KEYS[1]  {app:topic}:outbox  ZSET  target, NUL, position (16 digits), NUL, position before it, perhaps a comma and when it was written, NUL, follow-ups; all with score 0
ARGV[1]  the target behind which it begins; '' for the first one
ARGV[2]  the most targets

Returns  {target, how many entries wait, when the first of them was written in µs, the position of the one before it, ...}
Holds    rule 18
Cost     O(targets log n): a ZRANGE and a ZLEXCOUNT for each target
]]
local answer, limit, from = {}, tonumber(ARGV[2]), ARGV[1] == '' and '-' or '[' .. ARGV[1] .. string.char(1)
while #answer < 4 * limit do
  local first = redis.call('ZRANGE', outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local at = string.find(first, string.char(0), 1, true)
  local target = string.sub(first, 1, at - 1)
  local position, before, written = string.match(string.sub(first, at + 1), '^(%d+)%z(%d+),?(%d*)%z')
  local behind = target .. string.char(1)
  answer[#answer + 1] = target
  answer[#answer + 1] = redis.call('ZLEXCOUNT', outbox, '[' .. first, '(' .. behind)
  answer[#answer + 1] = tonumber(written) or tonumber(position) or 0
  answer[#answer + 1] = tonumber(before) or 0
  from = '[' .. behind
end
return answer

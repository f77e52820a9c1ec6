--[[ relay: removes entries of an outbox that have arrived, and gives the next ones to the node that relays.

KEYS[1]  {app:topic}:outbox  ZSET  target, NUL, position (16 digits), NUL, position before it, NUL, follow-ups; all with score 0
KEYS[2]  {app:topic}:meta    HASH  relay, relay-until
ARGV[1]  node
ARGV[2]  for how long it relays, ms
ARGV[3]  the most entries
ARGV[4]  the most bytes; the first entry may have more
ARGV[5]  n: the number of targets that have got entries
ARGV[6]  and on: each of these n targets and the position up to which it has them, and then the targets whose entries are not asked for

Returns  {ms for which another node relays or -1, how many entries there are, entries ...}
Holds    rule 18: the positions are the targets' own, read over this connection
Cost     one ZRANGE and one ZREM for each target that has got entries, two ZRANGE for each target with entries
]]
-- include clock.lua
local node, lease, limit, bytes, arrived = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local NUL = string.char(0)
local relay, relay_until = unpack(redis.call('HMGET', meta, 'relay', 'relay-until'))
-- Further ahead is a time from before the clock fell back.
if relay and relay ~= node and tonumber(relay_until) > floor and tonumber(relay_until) <= floor + lease then
  return {tonumber(relay_until) - floor, redis.call('ZCARD', outbox)}
end
for i = 6, 4 + 2 * arrived, 2 do
  local target, last = ARGV[i], string.format('%016d', tonumber(ARGV[i + 1]))
  local behind = '(' .. target .. NUL .. last .. string.char(1)
  local gone = redis.call('ZRANGE', outbox, '[' .. target .. NUL, behind, 'BYLEX', 'LIMIT', 0, 1000)
  if #gone > 0 then redis.call('ZREM', outbox, unpack(gone)) end
end
local without, answer, size, from = {}, {-1, redis.call('ZCARD', outbox)}, 0, '-'
for i = 6 + 2 * arrived, #ARGV do without[ARGV[i]] = true end
while #answer - 2 < limit do
  local first = redis.call('ZRANGE', outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target = string.sub(first, 1, string.find(first, NUL, 1, true) - 1)
  local behind = target .. string.char(1)
  if not without[target] then
    for _, entry in ipairs(redis.call('ZRANGE', outbox, '[' .. first, '(' .. behind, 'BYLEX', 'LIMIT', 0, limit - #answer + 2)) do
      size = size + #entry
      if size > bytes and #answer > 2 then break end
      answer[#answer + 1] = entry
    end
    if size > bytes then break end
  end
  from = '[' .. behind
end
if #answer > 2 then
  redis.call('HSET', meta, 'relay', node, 'relay-until', int(floor + lease))
elseif relay then
  redis.call('HDEL', meta, 'relay', 'relay-until')
end
return answer

--[[ relay: removes entries of an outbox that have arrived, and gives the next ones to the node that relays.

KEYS[1]  {app:topic}:outbox  ZSET  target, NUL, position (16 digits), NUL, position before it, perhaps a comma and when it was written, NUL, follow-ups; all with score 0
KEYS[2]  {app:topic}:meta    HASH  relay, relay-until
ARGV[1]  node
ARGV[2]  for how long it relays, ms
ARGV[3]  the most entries
ARGV[4]  the most bytes; the first entry may have more
ARGV[5]  how far ahead of the clock a position may be that a node sets back by itself, in µs
ARGV[6]  n: the number of targets that have got entries
ARGV[7]  and on: each of these n targets, its position, and up to which one it has answered the node; and then the targets whose entries are not asked for

Returns  {ms for which another node relays or -1, how many entries there are, the targets that are ahead, entries ...}. Of each that is ahead its name, its
         position, the one to which it is set back, and 1 if that is left to a person
Holds    rule 18: the positions are the targets' own, read over this connection. Nothing is removed of a target with a position at which there is no entry
Cost     one ZRANGE and one ZREM for each target that has got entries, two ZRANGE more where another node relays as well, two ZRANGE for each target with entries
]]
-- include clock.lua
local node, lease, limit, bytes, most_ahead, arrived = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local NUL = string.char(0)
local relay, relay_until = unpack(redis.call('HMGET', meta, 'relay', 'relay-until'))
if relay and relay ~= node and tonumber(relay_until) > floor then
  return {tonumber(relay_until) - floor, redis.call('ZCARD', outbox), {}}
end
local without, ahead = {}, {}
for i = 7, 6 + 3 * arrived, 3 do
  local target, position, last = ARGV[i], tonumber(ARGV[i + 1]), math.min(tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
  local from, at = '[' .. target .. NUL, target .. NUL .. string.format('%016d', position)
  local some = redis.call('ZRANGE', outbox, from, '(' .. target .. NUL .. string.format('%016d', last) .. string.char(1), 'BYLEX', 'LIMIT', 0, 1000)
  -- Mostly the target has the last one of these.
  local is_known = some[1] and string.sub(some[#some], 1, #at) == at or #redis.call('ZRANGE', outbox, '[' .. at .. NUL, '(' .. at .. string.char(1), 'BYLEX', 'LIMIT', 0, 1) > 0
  local first = not is_known and (some[1] or redis.call('ZRANGE', outbox, from, '(' .. target .. string.char(1), 'BYLEX', 'LIMIT', 0, 1)[1])
  local before = first and string.match(first, '^[^%z]*%z%d+%z(%d+)') or '0'
  if first and position > tonumber(before) then
    for _, one in ipairs({target, ARGV[i + 1], before, position > micros + most_ahead and 1 or 0}) do ahead[#ahead + 1] = one end
    without[target] = true
  elseif some[1] then
    redis.call('ZREM', outbox, unpack(some))
  end
end
local answer, size, from = {-1, redis.call('ZCARD', outbox), ahead}, 0, '-'
for i = 7 + 3 * arrived, #ARGV do without[ARGV[i]] = true end
while #answer - 3 < limit do
  local first = redis.call('ZRANGE', outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target = string.sub(first, 1, string.find(first, NUL, 1, true) - 1)
  local behind = target .. string.char(1)
  if not without[target] then
    for _, entry in ipairs(redis.call('ZRANGE', outbox, '[' .. first, '(' .. behind, 'BYLEX', 'LIMIT', 0, limit - #answer + 3)) do
      size = size + #entry
      if size > bytes and #answer > 3 then break end
      answer[#answer + 1] = entry
    end
    if size > bytes then break end
  end
  from = '[' .. behind
end
if #answer > 3 then
  redis.call('HSET', meta, 'relay', node, 'relay-until', int(floor + lease))
elseif relay then
  redis.call('HDEL', meta, 'relay', 'relay-until')
end
return answer

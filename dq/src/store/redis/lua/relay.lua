--[[ relay: removes entries of an outbox that have arrived, and gives the next ones to the node that relays.

KEYS[1]  {app:topic}:outbox  ZSET  target, NUL, position (16 digits), NUL, position before it, NUL, follow-ups; all with score 0
KEYS[2]  {app:topic}:meta    HASH  relay, relay-until
ARGV[1]  node
ARGV[2]  for how long it relays, ms
ARGV[3]  the most entries
ARGV[4]  the most bytes; the first entry may have more
ARGV[5]  n: the number of targets that have got entries
ARGV[6]  m: the number of entries that the node cannot read
ARGV[7]  and on: each of these n targets and the position up to which it has them; each of these m entries, as its target and position, which are
         neither given nor removed; and then the targets whose entries are not asked for

Returns  {ms for which another node relays or -1, how many entries there are, the beginning of the first member that is no entry or '', entries ...}
Holds    rules 1, 18: the positions are the targets' own, read over this connection. What is no entry stays where it is, and holds up nothing
Cost     one ZRANGE and one ZREM for each target that has got entries, two ZRANGE for each target with entries
]]
-- include clock.lua
local node, lease, limit, bytes, arrived, unread = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local NUL = string.char(0)
local relay, relay_until = unpack(redis.call('HMGET', meta, 'relay', 'relay-until'))
relay_until = tonumber(relay_until or '') or 0
-- Further ahead is a time from before the clock fell back.
if relay and relay ~= node and relay_until > floor and relay_until <= floor + lease then
  return {relay_until - floor, redis.call('ZCARD', outbox), ''}
end
-- include entries.lua
local is_unread, without = {}, {}
for i = 7 + 2 * arrived, 5 + 2 * (arrived + unread), 2 do is_unread[ARGV[i] .. NUL .. string.format('%016d', tonumber(ARGV[i + 1]))] = true end
for i = 7 + 2 * (arrived + unread), #ARGV do without[ARGV[i]] = true end
for i = 7, 5 + 2 * arrived, 2 do
  local target, last = ARGV[i], string.format('%016d', tonumber(ARGV[i + 1]))
  local behind, gone = '(' .. target .. NUL .. last .. string.char(1), {}
  for _, entry in ipairs(redis.call('ZRANGE', outbox, '[' .. target .. NUL, behind, 'BYLEX', 'LIMIT', 0, 1000 + unread)) do
    local _, position = target_of(entry)
    if position and not is_unread[target .. NUL .. position] then gone[#gone + 1] = entry end
  end
  for first = 1, #gone, 1000 do redis.call('ZREM', outbox, unpack(gone, first, math.min(first + 999, #gone))) end
end
local answer, size, from, left = {-1, redis.call('ZCARD', outbox), ''}, 0, '-', 2000
while #answer - 3 < limit and left > 0 do
  local first = redis.call('ZRANGE', outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target = target_of(first)
  if not target then
    if answer[3] == '' then answer[3] = string.sub(first, 1, 100) end
    from, left = '(' .. first, left - 1
  elseif without[target] then
    from = '[' .. target .. string.char(1)
  else
    local to = '(' .. target .. string.char(1)
    local entries = redis.call('ZRANGE', outbox, '[' .. first, to, 'BYLEX', 'LIMIT', 0, limit - #answer + 3)
    -- Where another program has given a member a score, the order is another one, and a range may have nothing.
    if #entries == 0 then entries = {first} end
    for _, entry in ipairs(entries) do
      local _, position = target_of(entry)
      if not position then
        if answer[3] == '' then answer[3] = string.sub(entry, 1, 100) end
        left = left - 1
      elseif is_unread[target .. NUL .. position] then
        left = left - 1
      else
        size = size + #entry
        if size > bytes and #answer > 3 then break end
        answer[#answer + 1] = entry
      end
      from = '(' .. entry
    end
    if size > bytes then break end
  end
end
if #answer > 3 then
  redis.call('HSET', meta, 'relay', node, 'relay-until', int(floor + lease))
elseif relay then
  redis.call('HDEL', meta, 'relay', 'relay-until')
end
return answer

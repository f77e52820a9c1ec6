--[[ relay: removes entries of an outbox that have arrived, and gives the next ones to the node that relays.

KEYS[1]  {app:topic}:outbox  ZSET  entries, as the part `entries` has them, all with score 0
KEYS[2]  {app:topic}:meta    HASH  relay, relay-until
ARGV[1]  node
ARGV[2]  for how long it relays, ms
ARGV[3]  the most entries
ARGV[4]  the most bytes; the first entry may have more
ARGV[5]  how far ahead of the clock a position may be that a node sets back by itself, in µs
ARGV[6]  n: the number of targets that have got entries
ARGV[7]  m: the number of entries that the node cannot read
ARGV[8]  and on: each of these n targets, the place of its position, when that was written, and up to which place it has answered the node; each of these m entries, as its target and position (16 digits),
         which are neither given nor removed; and then the targets whose entries are not asked for

Returns  {ms for which another node relays or false, how many entries there are, the beginning of the first member that is no entry or false, the targets that
         are ahead, entries}. Each that is ahead is {name, place and time of its position, the position to which it is set back, 1 if that is left to a person}
Holds    rules 1, 18: the positions are the targets' own, read over this connection. Nothing is removed of a target with a position that is of no entry.
         What is no entry, or cannot be read, stays where it is, holds up nothing, and tells nothing of its target
Cost     two ZRANGE; one ZRANGE and one ZREM for each target that has got entries, two ZRANGE more where another node relays as well, two ZRANGE for each target with entries
]]
-- include clock.lua
local node, lease, limit, bytes, arrived, unread = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[7])
local NUL = string.char(0)
local relay, relay_until = unpack(redis.call('HMGET', KEYS.meta, 'relay', 'relay-until'))
relay_until = tonumber(relay_until or '') or 0
-- Further ahead is a time from before the clock fell back.
if relay and relay ~= node and relay_until > floor and relay_until <= floor + lease then
  return {relay_until - floor, redis.call('ZCARD', KEYS.outbox), false, {}, {}}
end
-- Another program has given these a score. A range by name finds them only among others of the same score.
for _, scores in ipairs({{'-inf', '(0'}, {'(0', '+inf'}}) do
  for _, member in ipairs(redis.call('ZRANGE', KEYS.outbox, scores[1], scores[2], 'BYSCORE', 'LIMIT', 0, 100)) do redis.call('ZADD', KEYS.outbox, 0, member) end
end
-- include entries.lua
local is_unread, without, ahead = {}, {}, {}
for i = 8 + 4 * arrived, 6 + 4 * arrived + 2 * unread, 2 do is_unread[ARGV[i] .. NUL .. ARGV[i + 1]] = true end
for i = 8 + 4 * arrived + 2 * unread, #ARGV do without[ARGV[i]] = true end
-- When an entry was written. An unreadable one tells nothing: its position is taken for its own.
local function was_written(member)
  local _, position = target_of(member)
  local _, written = before_of(member)
  return tonumber(written or '') or tonumber(position)
end
local function read(members)
  local entries = {}
  for _, member in ipairs(members) do
    local target, position = target_of(member)
    if position and before_of(member) and not is_unread[target .. NUL .. position] then entries[#entries + 1] = member end
  end
  return entries
end
for i = 8, 4 + 4 * arrived, 4 do
  local target, position, written, last = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), math.min(tonumber(ARGV[i + 1]), tonumber(ARGV[i + 3]))
  local from, behind, at = '[' .. target .. NUL, '(' .. target .. string.char(1), target .. NUL .. string.format('%016d', position)
  local some = redis.call('ZRANGE', KEYS.outbox, from, '(' .. target .. NUL .. string.format('%016d', last) .. string.char(1), 'BYLEX', 'LIMIT', 0, 1000 + unread)
  local gone = read(some)
  -- Mostly the target has the last one of these.
  local is_known = gone[1] and string.sub(gone[#gone], 1, #at) == at and was_written(gone[#gone]) == written
  for _, member in ipairs(is_known and {} or redis.call('ZRANGE', KEYS.outbox, '[' .. at .. NUL, '(' .. at .. string.char(1), 'BYLEX', 'LIMIT', 0, 100)) do
    is_known = is_known or was_written(member) == written
  end
  if not is_known and some[1] then from = '(' .. some[#some] end
  local first = not is_known and (gone[1] or read(redis.call('ZRANGE', KEYS.outbox, from, behind, 'BYLEX', 'LIMIT', 0, 1 + unread))[1])
  local before = first and before_of(first)
  if before and position > tonumber(string.match(before, '^%d+')) then
    ahead[#ahead + 1] = {target, ARGV[i + 1], ARGV[i + 2], before, position > micros + ARGV[5] and 1 or 0}
    without[target] = true
  else
    for n = 1, #gone, 1000 do redis.call('ZREM', KEYS.outbox, unpack(gone, n, math.min(n + 999, #gone))) end
  end
end
local waiting, skipped, given, size, from, left = redis.call('ZCARD', KEYS.outbox), false, {}, 0, '-', 2000
while #given < limit and left > 0 do
  local first = redis.call('ZRANGE', KEYS.outbox, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not first then break end
  local target = target_of(first)
  if not target then
    skipped = skipped or string.sub(first, 1, 100)
    from, left = '(' .. first, left - 1
  elseif without[target] then
    from = '[' .. target .. string.char(1)
  else
    local to = '(' .. target .. string.char(1)
    local entries = redis.call('ZRANGE', KEYS.outbox, '[' .. first, to, 'BYLEX', 'LIMIT', 0, limit - #given)
    -- While more members have a score, the order is another one, and a range may have nothing.
    if #entries == 0 then entries = {first} end
    for _, entry in ipairs(entries) do
      local _, position = target_of(entry)
      if not position then
        skipped = skipped or string.sub(entry, 1, 100)
        left = left - 1
      elseif is_unread[target .. NUL .. position] then
        left = left - 1
      else
        size = size + #entry
        if size > bytes and given[1] then break end
        given[#given + 1] = entry
      end
      from = '(' .. entry
    end
    if size > bytes then break end
  end
end
if given[1] then
  redis.call('HSET', KEYS.meta, 'relay', node, 'relay-until', int(floor + lease))
elseif relay then
  redis.call('HDEL', KEYS.meta, 'relay', 'relay-until')
end
return {false, waiting, skipped, ahead, given}

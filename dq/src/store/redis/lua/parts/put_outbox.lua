--[[ put_outbox: writes the follow-ups of an outcome into the outbox.

Needs    packed: the follow-ups, as `follow_ups_of` in outcomes.rs writes them; outbox, meta; clock
Holds    rule 18
Cost     two HGET, one HSET and one ZADD for each target
]]
local count, at = struct.unpack('<I2', packed)
local function text()
  local size
  size, at = struct.unpack('<I4', packed, at)
  at = at + size
  return string.sub(packed, at - size, at - 1)
end
local last = tonumber(redis.call('HGET', meta, 'outbox') or 0) or 0
for _ = 1, count do
  local target, batch = text(), text()
  last = math.max(last + 1, micros)
  local position, field, NUL = string.format('%016d', last), 'outbox:' .. target, string.char(0)
  local after = redis.call('HGET', meta, field) or '0'
  redis.call('ZADD', outbox, 0, target .. NUL .. position .. NUL .. after .. NUL .. batch)
  redis.call('HSET', meta, 'outbox', position, field, position)
end

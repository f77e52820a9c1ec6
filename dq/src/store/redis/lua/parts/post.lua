--[[ post: writes an entry into the outbox.

Needs    target, batch: the topic that it is for, and what that does; outbox, meta; clock
Holds    rule 18
Cost     two HGET, one HSET and one ZADD
]]
local last = tonumber(redis.call('HGET', KEYS.meta, 'outbox') or '') or 0
-- What another program has raised above all positions counts as missing: no target would take what follows.
last = math.max((last <= 4503599627370496 and last or 0) + 1, micros)
local position, field, NUL = string.format('%016d', last), 'outbox:' .. target, string.char(0)
local after = redis.call('HGET', KEYS.meta, field) or ''
after = string.match(after, '^%d+$') or string.match(after, '^%d+,%d+$') or '0'
-- When it was written is its place, unless another entry has that one, or the clock fell back.
local written = last > micros and string.format('%d', micros)
redis.call('ZADD', KEYS.outbox, 0, target .. NUL .. position .. NUL .. after .. (written and ';' .. written or '') .. NUL .. batch)
redis.call('HSET', KEYS.meta, 'outbox', position, field, position .. (written and ',' .. written or ''))

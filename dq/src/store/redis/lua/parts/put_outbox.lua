--[[ put_outbox: writes the follow-ups of an outcome into the outbox.

Needs    packed: the follow-ups, as `follow_ups_of` in outcomes.rs writes them; outbox, meta; clock
Holds    rule 18
Cost     that of `post` for each target
]]
local count, at = struct.unpack('<I2', packed)
local function text()
  local size
  size, at = struct.unpack('<I4', packed, at)
  at = at + size
  return string.sub(packed, at - size, at - 1)
end
for _ = 1, count do
  local target, batch = text(), text()
  -- include post.lua
end

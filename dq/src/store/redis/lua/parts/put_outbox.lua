--[[ put_outbox: writes the follow-ups of an outcome into the outbox.

Needs    packed: the follow-ups, as `follow_ups_of` in outcomes.rs writes them; outbox, meta; clock
Holds    rule 18
Cost     that of `post` for each target
]]
local parts = cmsgpack.unpack(packed)
for i = 1, #parts, 2 do
  local target, batch = parts[i], parts[i + 1]
  -- include post.lua
end

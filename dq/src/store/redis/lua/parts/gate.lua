--[[ gate: what the state of the topic lets nodes take (rule 29).

Needs    paused, draining: fields of meta; clock; opens_at, drained_at: nil
Gives    opens_at: until when nothing may be taken, math.huge without an end, or nil; otherwise drained_at: only what was due then may
         be taken, or nil. paused: false if the pause has ended by itself
Cost     nothing
]]
if paused then
  opens_at = tonumber(string.match(paused, '^%d+:(%d+):') or math.huge)
  if opens_at <= floor then opens_at, paused = nil, false end
end
if draining and not opens_at then drained_at = tonumber(string.match(draining, '^%d+') or 0) end

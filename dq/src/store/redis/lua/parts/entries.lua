--[[ entries: tells what in an outbox is an entry. Another program, or a later version of dq, may have written anything else.

Gives    target_of(member): target and position (16 digits) of an entry, or nil if it is none. What follows its position it may be unable to read: nodes do
         that
Holds    rule 1
Cost     no command
]]
local function target_of(member)
  local target, position = string.match(member, '^([A-Za-z0-9._:-]+)%z(%d+)%z')
  if target and #target <= 128 and #position == 16 then return target, position end
end

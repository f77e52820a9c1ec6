--[[ entries: tells what in an outbox is an entry. Another program, or a later version of dq, may have written anything else.

A member is the target, a NUL, its place (16 digits), a NUL, the position of the one before it, perhaps a semicolon and when it was written, a NUL, and
what the target does. A position is a place, and perhaps a comma and when its entry was written.

Gives    target_of(member): target and position (16 digits) of an entry, or nil if it is none. What follows its position it may be unable to read: nodes do
         that
         before_of(member): of an entry the position of the one before it, as its place, perhaps with a comma and when that was written, and when it was
         itself written or '', or nil if that cannot be read
Holds    rule 1
Cost     no command
]]
local function target_of(member)
  local target, position = string.match(member, '^([A-Za-z0-9._:-]+)%z(%d+)%z')
  if target and #target <= 128 and #position == 16 then return target, position end
end
local function before_of(member)
  local before, written = string.match(member, '^[^%z]*%z%d+%z(%d+,?%d*);?(%d*)%z')
  if before and string.sub(before, -1) ~= ',' then return before, written end
end

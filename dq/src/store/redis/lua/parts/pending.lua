--[[ pending: pending commands and crash counts as text. A pending command is `END FENCE : REPLACEMENT` without the
blanks: END is a (acked), d (deleted), c (cancelled) or - (none); FENCE names the run that an ack is for, or is empty;
REPLACEMENT is empty or `WHEN DELIVER DUE`, where WHEN is r (in any case) or c (only if the end applies), DELIVER is q, b
or t, DUE is ms. The record of a replacement is in the key `replacements`, so that a command costs no payload.

Needs    clock
Gives    parse_command(text): {ending, fence, and of a replacement: conditional, deliver, due}, or nil if there is none;
         command_text(command); is_unfenced_end(command); parse_crashes(text): count, isolation;
         crashes_text(count, isolation). The isolation is + (grouped), ! (alone) or empty. Behind them a blank, the number of the last note of the run,
         a semicolon and its progress may follow, which end with the run
Holds    rules 13, 19. Text that is no pending command counts as none
]]
local function parse_command(text)
  if not text then return nil end
  local ending, fence, at = string.match(text, '^([adc%-])(%d*):()')
  if not ending then return nil end
  local command = {ending = ending ~= '-' and ending or nil, fence = fence}
  local when, deliver, due = string.match(text, '^([rc])([qbt])(%d+)$', at)
  if when then command.conditional, command.deliver, command.due = when == 'c', deliver, tonumber(due) end
  return command
end
local function command_text(command)
  local text = (command.ending or '-') .. command.fence .. ':'
  if not command.deliver then return text end
  return text .. (command.conditional and 'c' or 'r') .. command.deliver .. int(command.due)
end
local function is_unfenced_end(command) return command and command.ending and command.fence == '' end
local function parse_crashes(text)
  local count, isolation, behind = string.match(text or '', '^(%d+)([+!]?)(.?)')
  if not count or behind ~= '' and behind ~= ' ' then return 0, '' end
  return tonumber(count), isolation
end
local function crashes_text(count, isolation) return int(count) .. isolation end

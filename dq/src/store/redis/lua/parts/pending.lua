--[[ pending: what waits for the end of a run. As text `END FENCE : REPLACEMENT`, without the blanks:
END is a, d, c or - (acked, deleted, cancelled, none), FENCE names the run or is empty, REPLACEMENT is empty or
`WHEN DELIVER DUE : RECORD`, WHEN being r (in any case) or c (if the end applies), DELIVER q, b or t, DUE in ms.

Gives    pending_of(text): {how, fence, conditional, deliver, due, record} or nil; pending_text(pending);
         crashes_of(text): count, isolated; crashes_text(count, isolated)
Holds    rules 12, 13, 17, 19. Text that is no pending counts as none
]]
local function pending_of(text)
  if not text then return nil end
  local how, fence, at = string.match(text, '^([adc%-])(%d*):()')
  if not how then return nil end
  local pending = {how = how ~= '-' and how or nil, fence = fence}
  local when, deliver, due, start = string.match(text, '^([rc])([qbt])(%d+):()', at)
  if when then
    pending.conditional, pending.deliver, pending.due = when == 'c', deliver, tonumber(due)
    pending.record = string.sub(text, start)
  end
  return pending
end
local function pending_text(pending)
  local text = (pending.how or '-') .. pending.fence .. ':'
  if not pending.record then return text end
  return text .. (pending.conditional and 'c' or 'r') .. pending.deliver .. int(pending.due) .. ':' .. pending.record
end
local function crashes_of(text)
  local count, isolated = string.match(text or '', '^(%d+)(!?)$')
  return tonumber(count or 0), isolated == '!'
end
local function crashes_text(count, isolated) return int(count) .. (isolated and '!' or '') end

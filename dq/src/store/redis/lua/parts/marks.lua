--[[ marks: what waits for the end of a run. As text `END FENCE : REPLACEMENT`, without the blanks:
END is a, d, c or - (acked, deleted, cancelled, none), FENCE names the run or is empty, REPLACEMENT is empty or
`WHEN DELIVER DUE : RECORD`, WHEN being r (in any case) or c (if the end applies), DELIVER q, b or t, DUE in ms.

Gives    mark_of(text): {how, fence, conditional, deliver, due, record} or nil; mark_text(mark);
         crashes_of(text): count, begun; crashes_text(count, begun)
Holds    rules 12, 13, 17, 19. Text that is no mark counts as none
]]
local function mark_of(text)
  if not text then return nil end
  local how, fence, at = string.match(text, '^([adc%-])(%d*):()')
  if not how then return nil end
  local mark = {how = how ~= '-' and how or nil, fence = fence}
  local when, deliver, due, start = string.match(text, '^([rc])([qbt])(%d+):()', at)
  if when then
    mark.conditional, mark.deliver, mark.due = when == 'c', deliver, tonumber(due)
    mark.record = string.sub(text, start)
  end
  return mark
end
local function mark_text(mark)
  local text = (mark.how or '-') .. mark.fence .. ':'
  if not mark.record then return text end
  return text .. (mark.conditional and 'c' or 'r') .. mark.deliver .. int(mark.due) .. ':' .. mark.record
end
local function crashes_of(text)
  local count, begun = string.match(text or '', '^(%d+)(!?)$')
  return tonumber(count or 0), begun == '!'
end
local function crashes_text(count, begun) return int(count) .. (begun and '!' or '') end

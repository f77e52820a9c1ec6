--[[ score: the place of a DELAYED job in `delayed`. The due times of high jobs have PRIORITY added there and those of low ones twice
that, so the entries of each priority are a run of their own, in order of time, and all that asks for the place of an id is as ever.

Needs    PRIORITY, which the loader writes; clock
Gives    score(due, text): the score as text. `text` is the metadata or the record, whose first byte says the priority
Cost     no command
]]
local function score(due, text)
  local first = string.byte(text, 1) or 0
  if first < 160 or first > 191 then return int(due) end
  return int(due + (first < 176 and 1 or 2) * PRIORITY)
end

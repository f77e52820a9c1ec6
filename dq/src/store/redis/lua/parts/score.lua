--[[ score: the place of a DELAYED job in `delayed`. The due times of high jobs have PRIORITY added there and those of low ones twice
that, so the entries of each priority are a run of their own, in order of time, and all that asks for the place of an id is as ever.

Needs    PRIORITY, which the loader writes; clock, metadata
Gives    score(due, text): the score as text. `text` is the metadata or the record
Cost     no command
]]
local function score(due, text)
  return int(due + (field(text, FIELD.priority) or 0) * PRIORITY)
end

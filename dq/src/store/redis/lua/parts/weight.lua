--[[ weight: how much of a rate the start of a job spends.

Needs    metadata
Gives    weight_in(text): of a record, or of its metadata
Cost     no command
]]
local function weight_in(text) return field(text, FIELD.weight) or 1 end

--[[ weight: how much of a rate the start of a job spends.

Needs    metadata
Gives    weight_in(text): of a record, or of its metadata
Cost     no command
]]
local function weight_in(text)
  local fields_end = (string.byte(text, 1) or 0) % GROUPED == WEIGHED and ends_of(text)
  local weight = fields_end and #text >= fields_end and struct.unpack('<I2', text, fields_end - 7) or 0
  return weight >= 1 and weight <= 10000 and weight or 1
end

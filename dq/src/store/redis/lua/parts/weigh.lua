--[[ weigh: claims no more jobs than the rate lets start, by their weights. The tick of a schedule spends nothing.

Needs    pace, of the part `limits`; n, ids, records; clock
Gives    n, and as many ids and records; pace.weights and pace.refused
Holds    rule 29
Cost     no command
]]
local spent, fitting = 0, 0
-- include metadata.lua
local function weight_in(record)
  local fields_end = (string.byte(record, 1) or 0) % GROUPED == WEIGHED and ends_of(record)
  local weight = fields_end and #record >= fields_end and struct.unpack('<I2', record, fields_end - 7) or 0
  return weight >= 1 and weight <= 10000 and weight or 1
end
for i = 1, n do
  local weight = string.sub(ids[i], 1, 12) == 'dq:schedule:' and 0 or records[i] and weight_in(records[i]) or 1
  if not pace.may_start(spent, weight) then
    pace.refused = weight
    break
  end
  pace.weights[ids[i]], spent, fitting = weight, spent + weight, i
end
for i = fitting + 1, n do ids[i], records[i] = nil, nil end
n = fitting

--[[ weigh: claims no more jobs than the rate lets start, by their weights. The tick of a schedule spends nothing.

Needs    pace, of the part `limits`; n, ids, records; clock
Gives    n, and as many ids and records; pace.weights and pace.refused
Holds    rule 29
Cost     no command
]]
local spent, fitting = 0, 0
local function weight_of(record)
  -- Most lists are too short for a weight.
  if (string.byte(record, 1) or 0) < 144 + FIELD.weight then return 1 end
  if not pace.weight_in then
    -- rare metadata.lua
    -- include weight.lua
    pace.weight_in = weight_in
  end
  return pace.weight_in(record)
end
for i = 1, n do
  local weight = string.sub(ids[i], 1, 12) == 'dq:schedule:' and 0 or records[i] and weight_of(records[i]) or 1
  if not pace.may_start(spent, weight) then
    pace.refused = weight
    break
  end
  pace.weights[ids[i]], spent, fitting = weight, spent + weight, i
end
for i = fitting + 1, n do ids[i], records[i] = nil, nil end
n = fitting

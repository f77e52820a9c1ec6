--[[ order: compares ids byte by byte, as the server sorts them. Lua's own `<` depends on the locale of the server.

Gives    is_before(a, b)
]]
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

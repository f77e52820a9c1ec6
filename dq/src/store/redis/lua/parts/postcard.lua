--[[ postcard: writes numbers and texts as `postcard` has them, for an entry of an outbox that `dq/src/store/follow_up.rs` reads. A variant of an enum is
its number, a byte; a list is how many it has, then each.

Gives    varint(number), up to 2^53; text(bytes)
Cost     no command
]]
local function varint(number)
  local bytes = ''
  while number > 127 do bytes, number = bytes .. string.char(128 + number % 128), math.floor(number / 128) end
  return bytes .. string.char(number)
end
local function text(bytes) return varint(#bytes) .. bytes end

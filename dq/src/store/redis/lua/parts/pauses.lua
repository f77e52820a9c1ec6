--[[ pauses: lets up to 100 groups continue whose pauses have ended, each at the end of its pause.

Needs    grouped, delayed; call and format of the part `claim`; clock
Gives    pauses: {next: when the next pause ends, ms, or nil}
Holds    rules 4, 29
Cost     two ZRANGE; per group that continues two ZRANGE, two ZREM and what the part `groups` says
]]
-- include bulk.lua
-- include metadata.lua
-- include groups.lua
for _, entry in ipairs(call('ZRANGE', grouped, '[\0' .. '3', '(\0' .. '3' .. format('%016d', floor + 1), 'BYLEX', 'LIMIT', '0', '100')) do
  local name = string.sub(entry, 19)
  call('ZREM', grouped, entry)
  seating.set_pause(name, seating.pause_of(name) or '', '')
  seating.open(name, tonumber(string.sub(entry, 3, 18)) * 1000)
end
local first = call('ZRANGE', grouped, '[\0' .. '3', '(\0' .. '4', 'BYLEX', 'LIMIT', '0', '1')[1]
local ends_at = first and string.sub(first, 3, 18)
pauses = {next = ends_at and ends_at ~= '9999999999999999' and tonumber(ends_at) or nil}

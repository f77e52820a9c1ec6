--[[ pauses: lets up to 100 groups continue whose pauses have ended or whose rates have opened, each at that time.

Needs    grouped, delayed; group_rate: field of meta; ARGV[10]: the rate of each group, as the code of the node says; call and format of the part `claim`; clock
Gives    pauses: {next: when the next pause ends or the next rate opens, ms, or nil}
Holds    rules 4, 29
Cost     five ZRANGE, and one more while a group waits for its rate; per group that continues two ZRANGE, two ZREM and what the part `groups` says
]]
-- include bulk.lua
-- include metadata.lua
-- include groups.lua
for _, entry in ipairs(call('ZRANGE', KEYS.grouped, '[\0' .. '3', '(\0' .. '3' .. format('%016d', floor + 1), 'BYLEX', 'LIMIT', '0', '100')) do
  local name = string.sub(entry, 19)
  call('ZREM', KEYS.grouped, entry)
  seating.set_pause(name, seating.pause_of(name) or '', '')
  seating.open(name, (tonumber(string.sub(entry, 3, 18)) or floor) * 1000)
end
for _, entry in ipairs(call('ZRANGE', KEYS.grouped, '[\0' .. '4', '(\0' .. '4' .. format('%016d', micros + 1), 'BYLEX', 'LIMIT', '0', '100')) do
  local time, name = string.sub(entry, 3, 18), string.sub(entry, 19)
  call('ZREM', KEYS.grouped, entry)
  if tonumber(time) then call('ZADD', KEYS.grouped, '0', '\0' .. '5' .. time .. name) end
  seating.open(name, tonumber(time))
end
do
  -- Further ahead is a time from before the clock fell back: the next claim finds out when the group may continue.
  local most, period = string.match(group_rate and string.match(group_rate, '^%d+:([%d/]+):') or ARGV[10], '^(%d+)/(%d+)/')
  local latest = most and micros + math.ceil(period * 1005 / most)
  for _, entry in ipairs(latest and call('ZRANGE', KEYS.grouped, '(\0' .. '5', '[\0' .. '4', 'BYLEX', 'REV', 'LIMIT', '0', '100') or {}) do
    local time, name = string.sub(entry, 3, 18), string.sub(entry, 19)
    local own = '\0' .. '6' .. name .. '\0' .. time
    own = call('ZRANGE', KEYS.grouped, '[' .. own, '(' .. own .. ':', 'BYLEX', 'LIMIT', '0', '1')[1]
    if own and tonumber(string.sub(own, -16)) <= latest then break end
    call('ZREM', KEYS.grouped, entry)
    call('ZADD', KEYS.grouped, '0', '\0' .. '5' .. time .. name)
    seating.open(name, micros)
  end
end
if not group_rate and ARGV[10] == '' then
  for _, entry in ipairs(call('ZRANGE', KEYS.grouped, '[\0' .. '5', '(\0' .. '6', 'BYLEX', 'LIMIT', '0', '100')) do
    local own = '\0' .. '6' .. string.sub(entry, 19) .. '\0' .. string.sub(entry, 3, 18)
    call('ZREM', KEYS.grouped, entry, call('ZRANGE', KEYS.grouped, '[' .. own, '(' .. own .. ':', 'BYLEX', 'LIMIT', '0', '1')[1] or '')
  end
end
local first = call('ZRANGE', KEYS.grouped, '[\0' .. '3', '(\0' .. '4', 'BYLEX', 'LIMIT', '0', '1')[1]
local ends_at = first and string.sub(first, 3, 18)
local opening = call('ZRANGE', KEYS.grouped, '[\0' .. '4', '(\0' .. '5', 'BYLEX', 'LIMIT', '0', '1')[1]
local opens = opening and tonumber(string.sub(opening, 3, 18)) or math.huge
pauses = {next = math.min(ends_at and tonumber(ends_at) or math.huge, math.ceil(opens / 1000))}

--[[ groups: a page of the groups of a topic that have jobs or are paused, in order of their names. Reads only.

KEYS[1]  {app:topic}:delayed       ZSET  job id -> due time, ms
KEYS[2]  {app:topic}:unacked       ZSET  job id -> when it was parked, ms
KEYS[3]  {app:topic}:dead          ZSET  job id -> when it became DEAD, ms
KEYS[4]  {app:topic}:done          ZSET  job id -> end of its retention, ms
KEYS[5]  {app:topic}:grouped       ZSET  waiting jobs and seats of groups, all with score 0
KEYS[6]  {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  the name behind which the page begins, which need not exist; '' for the first page
ARGV[2]  limit, 1..=100
ARGV[3]  the most seats of a group that are named
ARGV[4]  the name of the only group to look at; '' for all
ARGV[5]  and on: nodes, in the order of their keys

Returns  {1 if others follow, groups}, each {name, how many wait, 1 if the first of them may not start, of each job with a seat {id, state d u x f r,
         time ms, the number of its node, 0 if it is unknown, token or ''}, the pause as `meta` has that of a topic, or '', when its rate opens µs, 0 if
         it is open}
Holds    rules 4, 5
Cost     per group five ZRANGE, a ZLEXCOUNT and a ZSCORE; per seat four ZMSCORE members, and one HMGET field for each node
]]
-- include clock.lua
-- include bulk.lua
-- include places.lua
local at, limit, most, groups = ARGV[1], tonumber(ARGV[2]), ARGV[3], {}
local function next_name()
  if ARGV[4] ~= '' then return at ~= ARGV[4] and redis.call('ZRANGE', KEYS.grouped, '[' .. ARGV[4] .. '\0', '(' .. ARGV[4] .. '\1', 'BYLEX', 'LIMIT', '0', '1')[1] and ARGV[4] end
  local from = at == '' and '[\1' or '(' .. at .. '\1'
  -- What another program wrote may have no name.
  for _ = 1, 1000 do
    local entry = redis.call('ZRANGE', KEYS.grouped, from, '+', 'BYLEX', 'LIMIT', '0', '1')[1]
    local name = entry and string.match(entry, '^(.-)%z')
    if name or not entry then return name end
    from = '(' .. entry
  end
end
local function entries_of(name, kind, count)
  return redis.call('ZRANGE', KEYS.grouped, '[' .. name .. '\0' .. kind, '(' .. name .. '\0' .. kind .. '\255', 'BYLEX', 'LIMIT', '0', count)
end
local name = next_name()
while name and #groups < limit do
  at = name
  local ids, nodes, tokens, seats = {}, {}, {}, {}
  for i, entry in ipairs(entries_of(name, 's', most)) do ids[i] = string.sub(entry, #name + 3) end
  local states, times = places_of(ids)
  for n = 5, #ARGV do
    for i, token in ipairs(read('HMGET', KEYS[FIRST + n - 5], ids)) do
      if token then nodes[i], tokens[i] = n - 4, token end
    end
  end
  for i, id in ipairs(ids) do
    seats[i] = {id, states[i], times[i] or 0, nodes[i] or 0, tokens[i] or ''}
  end
  local first = entries_of(name, 'w', '1')[1]
  local place = first and tonumber(redis.call('ZSCORE', KEYS.delayed, string.sub(first, #name + 35)) or nil)
  local turn = entries_of(name, 't', '1')[1]
  -- A group that may borrow is full as long as anything else is due.
  local is_full = place and place >= 3 * PRIORITY and not (turn and string.byte(turn, #name + 3) < 55)
  local pause = string.sub(entries_of(name, 'v', '1')[1] or '', #name + 3)
  if tonumber(string.match(pause, '^%d+:(%d+):') or math.huge) <= floor then pause = '' end
  local spent = redis.call('ZRANGE', KEYS.grouped, '[\0' .. '6' .. name .. '\0', '(\0' .. '6' .. name .. '\1', 'BYLEX', 'LIMIT', '0', '1')[1]
  local opens = tonumber(string.sub(spent or '', -32, -17)) or 0
  local waiting = redis.call('ZLEXCOUNT', KEYS.grouped, '[' .. name .. '\0w', '(' .. name .. '\0x')
  -- What is left of a pause that has ended goes with the next claim.
  if waiting > 0 or #ids > 0 or pause ~= '' then groups[#groups + 1] = {name, waiting, is_full and 1 or 0, seats, pause, opens > micros and int(opens) or '0'} end
  name = next_name()
end
return {name and 1 or 0, groups}

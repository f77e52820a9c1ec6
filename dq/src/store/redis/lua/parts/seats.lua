--[[ seats: of jobs that are due, takes those that have a seat in their group, or get one because it has fewer than may run, or because it
may borrow and nothing else was due. The others, and all of a group that is paused or has spent its rate, leave their place for that of blocked
jobs, so no claim meets them again before a seat is free, the pause is over or the rate opens; those of a group that may borrow stand behind all
others.

Needs    group_concurrency, group_burst, group_rate: fields of meta; ARGV[9]: how many jobs of a group may have a seat, as the code of the node
         says, 0 for any number; ARGV[10]: the rate of each group, as that code says, or empty; ARGV[11]: how many more a group may borrow, as that
         code says; limit; n, ids, records, scores; their_turns: the turns of those that stand at one, or nil; pauses: nil if no group is paused; latest; call; jobs, delayed, grouped; seated: nil; clock
Gives    are_elsewhere: names those that are blocked, and those that stand at a turn and are due later than `latest`, which go back to their due
         time; seated(): writes what has changed, and lets the next job of each group come
Holds    rule 4
Cost     per job with a group ZSCORE and ZLEXCOUNT; per claimed one ZADD, ZREM, ZRANGE; per blocked one ZADD twice, and once HEXISTS
         for each seat of its group, because a seat of a job that is gone is free; while a group is paused, one ZRANGE a job; where groups may
         borrow, a ZRANGE and three ZMSCORE for each full one
]]
-- include bulk.lua
-- include metadata.lua
-- include score.lua
-- include groups.lua
local group_limit = tonumber(string.match(group_concurrency or '', '^%d+:(%d+):') or ARGV[9])
if group_limit == 0 then group_limit = math.huge end
-- A group of one job is a queue, which a second one would break.
local most_seats = group_limit + (group_limit > 1 and tonumber(string.match(group_burst or '', '^%d+:(%d+):') or ARGV[11]) or 0)
local rate_of_groups, group_rates = string.match(group_rate and string.match(group_rate, '^%d+:([%d/]+):') or ARGV[10], '^%d+/%d+/%d+$'), nil
if rate_of_groups then
  -- rare group_rate.lua
  group_rates = rates
end
local taken, blocked, entries, seats, gone, shut_out, served = {}, {}, {}, {}, {}, {}, {}
local function seats_of(name)
  if not taken[name] then taken[name] = call('ZLEXCOUNT', KEYS.grouped, '[' .. name .. '\0s', '(' .. name .. '\0t') end
  if taken[name] >= group_limit then
    for _, entry in ipairs(call('ZRANGE', KEYS.grouped, '[' .. name .. '\0s', '(' .. name .. '\0t', 'BYLEX')) do
      if call('HEXISTS', KEYS.jobs, string.sub(entry, #name + 3)) == 0 then taken[name] = taken[name] - call('ZREM', KEYS.grouped, entry) end
    end
  end
  return taken[name]
end
-- A group that waits for a job with a seat borrows nothing.
local function may_borrow(name)
  if most_seats == group_limit or taken[name] >= most_seats then return false end
  local ids = {}
  for i, entry in ipairs(call('ZRANGE', KEYS.grouped, '[' .. name .. '\0s', '(' .. name .. '\0t', 'BYLEX')) do ids[i] = string.sub(entry, #name + 3) end
  for _, other in ipairs({KEYS.delayed, KEYS.unacked, KEYS.dead}) do
    for _, at in ipairs(call('ZMSCORE', other, unpack(ids))) do
      if at then return false end
    end
  end
  return true
end
local function is_paused(name)
  local pause = pauses and seating.pause_of(name)
  return pause and tonumber(string.match(pause, '^%d+:(%d+):') or math.huge) > floor
end
local has_blocked = false
for i = 1, n do
  local name, order = seating.group_of(records[i], ids[i])
  local turn, is_early = their_turns and their_turns[i], false
  if turn then
    is_early, gone[#gone + 1], gone[#gone + 2] = tonumber(scores[2 * i]) > latest, seating.turn_entries(name or '', turn, ids[i])
  end
  if is_early then
    blocked[i], has_blocked = true, true
    if records[i] then shut_out[#shut_out + 1], shut_out[#shut_out + 2] = score(tonumber(scores[2 * i]), records[i]), ids[i] end
  elseif name then
    local due, has_seat, is_held = tonumber(scores[2 * i]), call('ZSCORE', KEYS.grouped, seating.seat_of(name, ids[i])), is_paused(name)
    local starts = not is_held and group_rates and group_rates.starts(name, records[i])
    if starts then
      is_held = true
      group_rates.wait(name, starts)
    end
    local entry = seating.entry_of(name, order, due, ids[i])
    local borrows = not has_seat and not is_held and seats_of(name) >= group_limit and may_borrow(name)
    if not has_seat and not is_held and (taken[name] < group_limit or borrows and turn and seating.borrows(turn)) then
      taken[name], served[name] = taken[name] + 1, true
      seats[#seats + 1], seats[#seats + 2], gone[#gone + 1] = '0', seating.seat_of(name, ids[i]), entry
    elseif is_held or not has_seat then
      blocked[i], has_blocked = true, true
      if not has_seat then entries[#entries + 1], entries[#entries + 2] = '0', entry end
      if borrows then
        local by_name, by_turn = seating.turn_entries(name, '7' .. format('%016d', micros), ids[i])
        local count = #entries
        entries[count + 1], entries[count + 2], entries[count + 3], entries[count + 4] = '0', by_name, '0', by_turn
      end
      shut_out[#shut_out + 1], shut_out[#shut_out + 2] = int(tonumber(score(due, records[i])) + seating.BLOCKED), ids[i]
    end
    if group_rates and not blocked[i] then group_rates.spend(name, records[i]) end
    if has_seat and not blocked[i] and most_seats > group_limit then served[name] = seats_of(name) end
  end
end
if has_blocked then
  are_elsewhere = function() return blocked end
end
function seated()
  write('ZADD', KEYS.delayed, shut_out)
  write('ZADD', KEYS.grouped, entries)
  write('ZREM', KEYS.grouped, gone)
  write('ZADD', KEYS.grouped, seats)
  local opens = group_rates and group_rates.write()
  if opens then
    pauses = pauses or {next = math.huge}
    pauses.next = math.min(pauses.next, math.ceil(opens / 1000))
  end
  for name, count in pairs(taken) do
    local borrows = count >= group_limit
    if not borrows or served[name] and count < most_seats then seating.let_next(name, micros, false, borrows) end
  end
end

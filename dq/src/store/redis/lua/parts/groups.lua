--[[ groups: which jobs of a group stand where claims look. The ZSET `grouped` has an entry for each waiting job of a group, NAME, NUL, `w`, due
time and order (16 digits each) and id; and for each seat NAME, NUL, `s` and id. Only the first waiting job of a group may be claimed. The
others have BLOCKED added to their scores in `delayed`, so they stand behind all priorities. The first one has it too while its group is full; and
while it stands at the turn of its group, which is a digit (0 normal, 1 high, 2 low; 7 of a full group that may borrow) and a time in µs (16 digits). Then there are two entries
more: NAME, NUL, `t` and the turn; and NUL, the turn and the id, which claims look at. A paused group has two as well: NAME, NUL, `v` and the text
of the pause, as `meta` has that of a topic; and NUL, 3, the end of the pause in ms (16 digits, all 9 if it has none) and NAME. A group
that has spent of its rate also has two: NUL, 6, NAME, NUL, when its next job may start and when one of weight 1 could, in µs (16 digits each); and NUL, 4
if a job waits for the first of these times and 5 otherwise, that time and NAME.

Needs    delayed, grouped; clock, bulk, metadata; PRIORITY, which the loader writes
Gives    BLOCKED. group_of(text, id): name and order of the group in metadata or a record, or nil; a schedule is in none, even if another program
         wrote one, and `id` may be missing where it cannot be one. seat_of(name, id), entry_of(name, order, due, id).
         has_seat(id, text). join_group(id, text, due): the job waits; leave_group(id, text, due): it waits no longer and has no seat
         any more (due may be nil); free_seat(id, text). turn_entries(name, turn, id). let_next(name, turn, has_changed, borrows): the first job may be claimed, at
         this turn, µs, if it is after its due time, of a group that may borrow or another one; it stays where it is if it stands there. pause_of(name): the text, or nil; set_pause(name,
         before, now): replaces it, each '' if there is none; open(name, turn): let_next, and those that have a seat. head(): the earliest due time that may be claimed, or nil. regroup(): writes
         all that, after the scores of `delayed` were written as if there were no groups; returns the head
Holds    rule 4. A seat is an entry of its own, so it cannot be given back twice
Cost     per group that changes up to four ZRANGE and ZADD; per job a ZADD or ZREM member
]]
-- A key of a wrong type is found before the first write.
if has_groups then redis.call('ZCARD', KEYS.grouped) end
local seating = {BLOCKED = 3 * PRIORITY}
do
  local group_changes = {}
  function seating.group_of(text, id)
    if id and string.sub(id, 1, 12) == 'dq:schedule:' then return nil end
    local name = text and field(text, FIELD.group)
    if not name or string.find(name, '%z') then return nil end
    -- An entry has 16 digits. No dq writes a larger order, and the node that claims the job makes it DEAD (rule 5).
    return name, math.min(tonumber(field(text, FIELD.group_order) or 0), 4503599627370496)
  end
  function seating.seat_of(name, id) return name .. '\0s' .. id end
  function seating.entry_of(name, order, due, id) return name .. '\0w' .. string.format('%016d%016d', due, order) .. id end
  local function changes_of(name)
    local known = group_changes[name] or {out = {}, into = {}, seats = {}}
    group_changes[name] = known
    return known
  end
  function seating.has_seat(id, text)
    local name = seating.group_of(text, id)
    return name and redis.call('ZSCORE', KEYS.grouped, seating.seat_of(name, id))
  end
  function seating.free_seat(id, text)
    local name = seating.group_of(text, id)
    if name then table.insert(changes_of(name).seats, seating.seat_of(name, id)) end
  end
  function seating.join(id, text, due)
    local name, order = seating.group_of(text, id)
    if name then table.insert(changes_of(name).into, {entry = seating.entry_of(name, order, due, id), id = id}) end
  end
  function seating.leave(id, text, due)
    local name, order = seating.group_of(text, id)
    if name and due then table.insert(changes_of(name).out, seating.entry_of(name, order, due, id)) end
    seating.free_seat(id, text)
  end
  local function first_entry(name)
    return redis.call('ZRANGE', KEYS.grouped, '[' .. name .. '\0w', '(' .. name .. '\0x', 'BYLEX', 'LIMIT', '0', '1')[1]
  end
  local function id_in(name, entry) return string.sub(entry, #name + 35) end
  local function place_of(id) return tonumber(redis.call('ZSCORE', KEYS.delayed, id) or nil) end
  function seating.shift(id, is_blocked)
    local at = place_of(id)
    if at and (at >= seating.BLOCKED) ~= is_blocked then redis.call('ZADD', KEYS.delayed, int(is_blocked and at + seating.BLOCKED or at - seating.BLOCKED), id) end
  end
  function seating.turn_entries(name, turn, id) return name .. '\0t' .. turn, '\0' .. turn .. id end
  local function turn_of(name)
    local entry = redis.call('ZRANGE', KEYS.grouped, '[' .. name .. '\0t', '(' .. name .. '\0u', 'BYLEX', 'LIMIT', '0', '1')[1]
    return entry and string.sub(entry, #name + 3)
  end
  function seating.borrows(turn) return string.byte(turn) == 55 end
  local function come(name, id, at, turn, borrows)
    local is_over = turn and at % PRIORITY * 1000 < turn
    if is_over then
      local by_name, by_turn = seating.turn_entries(name, string.format('%d%016d', borrows and 7 or math.floor(at / PRIORITY) % 3, turn), id)
      redis.call('ZADD', KEYS.grouped, '0', by_name, '0', by_turn)
    end
    seating.shift(id, is_over or false)
  end
  -- What another program has taken out of `delayed` goes.
  function seating.let_next(name, turn, has_changed, borrows)
    local entry = first_entry(name)
    while entry do
      local id = id_in(name, entry)
      local at = place_of(id)
      local own = at and not has_changed and at >= seating.BLOCKED and turn_of(name)
      local stands = own and (borrows or not seating.borrows(own)) and redis.call('ZSCORE', KEYS.grouped, '\0' .. own .. id)
      if at and not has_changed and (at < seating.BLOCKED or stands) then return entry end
      if own then redis.call('ZREM', KEYS.grouped, seating.turn_entries(name, own, id)) end
      if at then
        come(name, id, at, turn, borrows)
        return entry
      end
      redis.call('ZREM', KEYS.grouped, entry)
      entry = first_entry(name)
    end
  end
  function seating.pause_of(name)
    local entry = redis.call('ZRANGE', KEYS.grouped, '[' .. name .. '\0v', '(' .. name .. '\0w', 'BYLEX', 'LIMIT', '0', '1')[1]
    return entry and string.sub(entry, #name + 3)
  end
  local function pause_entries(name, pause)
    local ends_at = string.match(pause, '^%d+:(%d+):')
    return name .. '\0v' .. pause, '\0' .. '3' .. (ends_at and string.format('%016d', tonumber(ends_at)) or '9999999999999999') .. name
  end
  function seating.set_pause(name, before, now)
    if before ~= '' then redis.call('ZREM', KEYS.grouped, pause_entries(name, before)) end
    if now ~= '' then
      local by_name, by_end = pause_entries(name, now)
      redis.call('ZADD', KEYS.grouped, '0', by_name, '0', by_end)
    end
  end
  function seating.open(name, turn)
    for _, entry in ipairs(redis.call('ZRANGE', KEYS.grouped, '[' .. name .. '\0s', '(' .. name .. '\0t', 'BYLEX')) do
      seating.shift(string.sub(entry, #name + 3), false)
    end
    seating.let_next(name, turn)
  end
  function seating.is_served(name) return redis.call('ZLEXCOUNT', KEYS.grouped, '[' .. name .. '\0s', '(' .. name .. '\0t') > 0 end
  function seating.head()
    local head
    -- include head.lua
    return head
  end
  function seating.regroup()
    for name, change in pairs(group_changes) do
      local before, freed, entries, touched = first_entry(name), 0, {}, {}
      local own = before and turn_of(name)
      for i = 1, #change.seats, 1000 do
        freed = freed + redis.call('ZREM', KEYS.grouped, unpack(change.seats, i, math.min(i + 999, #change.seats)))
      end
      write('ZREM', KEYS.grouped, change.out)
      for _, new in ipairs(change.into) do
        entries[#entries + 1], entries[#entries + 2], touched[new.entry] = '0', new.entry, true
      end
      write('ZADD', KEYS.grouped, entries)
      local first = first_entry(name)
      local has_changed = first ~= before or touched[first]
      -- A turn stays with the group.
      if own and has_changed then redis.call('ZREM', KEYS.grouped, seating.turn_entries(name, own, id_in(name, before))) end
      if first and (freed > 0 or has_changed) then
        local turn = own and not seating.borrows(own) and tonumber(string.sub(own, 2)) or before and (freed > 0 or seating.is_served(name)) and micros or nil
        first = seating.let_next(name, turn, has_changed)
      end
      if before and before ~= first and redis.call('ZSCORE', KEYS.grouped, before) then seating.shift(id_in(name, before), true) end
      for _, new in ipairs(change.into) do
        if new.entry ~= first then seating.shift(new.id, true) end
      end
    end
    group_changes = {}
    return seating.head()
  end
end

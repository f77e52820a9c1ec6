--[[ groups: which jobs of a group stand where claims look. The ZSET `grouped` has an entry for each waiting job of a group, NAME, NUL, `w`, due
time and order (16 digits each) and id; and for each seat NAME, NUL, `s` and id. Only the first waiting job of a group may be claimed. The
others have BLOCKED added to their scores in `delayed`, so they stand behind all priorities. A group is full while its first job is blocked, too.

Needs    delayed, grouped; clock, bulk, metadata; PRIORITY, which the loader writes
Gives    BLOCKED. group_of(text): name and order of the group in metadata or a record, or nil. seat_of(name, id), entry_of(name, order, due, id).
         has_seat(id, text). join_group(id, text, due): the job waits; leave_group(id, text, due): it waits no longer and has no seat
         any more (due may be nil); free_seat(id, text). let_next(name): the first job may be claimed. regroup(): writes
         all that, after the scores of `delayed` were written as if there were no groups; returns the earliest due time that may be claimed, or nil
Holds    rule 4. A seat is an entry of its own, so it cannot be given back twice
Cost     per group that changes up to three ZRANGE and ZADD; per job a ZADD or ZREM member
]]
-- A key of a wrong type is found before the first write.
if has_groups then redis.call('ZCARD', grouped) end
local seating = {BLOCKED = 3 * PRIORITY}
do
  local group_changes = {}
  function seating.group_of(text)
    local first = text and string.byte(text, 1)
    if not first or first < FORMAT or first > LAST_FORMAT or first % 16 < GROUPED then return nil end
    local fields_end, _, _, group_end = ends_of(text)
    if not fields_end then return nil end
    local name = string.sub(text, fields_end + 10, group_end)
    if name == '' or string.find(name, '%z') then return nil end
    return name, (struct.unpack('<I8', text, fields_end + 2))
  end
  function seating.seat_of(name, id) return name .. '\0s' .. id end
  function seating.entry_of(name, order, due, id) return name .. '\0w' .. string.format('%016d%016d', due, order) .. id end
  local function changes_of(name)
    local known = group_changes[name] or {out = {}, into = {}, seats = {}}
    group_changes[name] = known
    return known
  end
  function seating.has_seat(id, text)
    local name = seating.group_of(text)
    return name and redis.call('ZSCORE', grouped, seating.seat_of(name, id))
  end
  function seating.free_seat(id, text)
    local name = seating.group_of(text)
    if name then table.insert(changes_of(name).seats, seating.seat_of(name, id)) end
  end
  function seating.join(id, text, due)
    local name, order = seating.group_of(text)
    if name then table.insert(changes_of(name).into, {entry = seating.entry_of(name, order, due, id), id = id}) end
  end
  function seating.leave(id, text, due)
    local name, order = seating.group_of(text)
    if name and due then table.insert(changes_of(name).out, seating.entry_of(name, order, due, id)) end
    seating.free_seat(id, text)
  end
  local function first_entry(name)
    return redis.call('ZRANGE', grouped, '[' .. name .. '\0w', '(' .. name .. '\0x', 'BYLEX', 'LIMIT', '0', '1')[1]
  end
  local function id_in(name, entry) return string.sub(entry, #name + 35) end
  function seating.shift(id, is_blocked)
    local at = tonumber(redis.call('ZSCORE', delayed, id) or nil)
    if at and (at >= seating.BLOCKED) ~= is_blocked then redis.call('ZADD', delayed, int(is_blocked and at + seating.BLOCKED or at - seating.BLOCKED), id) end
    return at
  end
  -- An entry whose job another program has taken out of `delayed` goes.
  function seating.let_next(name)
    local entry = first_entry(name)
    while entry and not seating.shift(id_in(name, entry), false) do
      redis.call('ZREM', grouped, entry)
      entry = first_entry(name)
    end
    return entry
  end
  function seating.regroup()
    for name, change in pairs(group_changes) do
      local before, freed, entries, touched = first_entry(name), 0, {}, {}
      for i = 1, #change.seats, 1000 do
        freed = freed + redis.call('ZREM', grouped, unpack(change.seats, i, math.min(i + 999, #change.seats)))
      end
      write('ZREM', grouped, change.out)
      for _, new in ipairs(change.into) do
        entries[#entries + 1], entries[#entries + 2], touched[new.entry] = '0', new.entry, true
      end
      write('ZADD', grouped, entries)
      local first = first_entry(name)
      if first and (freed > 0 or first ~= before or touched[first]) then first = seating.let_next(name) end
      if before and before ~= first and redis.call('ZSCORE', grouped, before) then seating.shift(id_in(name, before), true) end
      for _, new in ipairs(change.into) do
        if new.entry ~= first then seating.shift(new.id, true) end
      end
    end
    group_changes = {}
    local head
    -- include head.lua
    return head
  end
end

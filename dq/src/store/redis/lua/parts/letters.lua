--[[ letters: says where the topic has the jobs and broadcasts of ids.

Needs    all keys of jobs; has_groups: whether jobs may have groups; bulk, far, groups; NODES: the nodes whose rows are in KEYS; FIRST, which the loader writes: the number of the first of
         these keys
Gives    letters_of(ids): for each id the letters of what has it. j: it has a record; w: a record that is due much later; l: its leaf
         has it; d u x f: the places; b: the broadcasts that wait; s: the list of schedules; r: the rows of a node, once for each; B: a
         record of a broadcast; M P C: metadata, a pending command or crashes, though it has no record; g: it is blocked, and its group
         neither knows that it waits nor is paused or slowed down while it has a seat
Cost     six ZMSCORE; one HMGET per node; per id one HEXISTS in each of three hashes that are there, and in three more without a record;
         per job that is due much later ZRANGE and two HGET; while there are groups one ZSCORE per id, and per blocked job two HGET and a ZSCORE
]]
local function letters_of(ids)
  local letters = {}
  for i = 1, #ids do letters[i] = '' end
  local function mark(letter, found)
    for i = 1, #ids do
      if found[i] then letters[i] = letters[i] .. letter end
    end
  end
  local function look(letter, key, of_no_job)
    if redis.call('EXISTS', key) == 0 then return end
    for i, id in ipairs(ids) do
      local is_needed = not (of_no_job and string.find(letters[i], 'j', 1, true))
      if is_needed and redis.call('HEXISTS', key, id) == 1 then letters[i] = letters[i] .. letter end
    end
  end
  look('j', KEYS.jobs)
  for _, place in ipairs({{'d', KEYS.delayed}, {'u', KEYS.unacked}, {'x', KEYS.dead}, {'f', KEYS.done}, {'b', KEYS.broadcasts}, {'s', KEYS.schedules}}) do
    mark(place[1], read('ZMSCORE', place[2], ids))
  end
  for n = 1, #NODES do mark('r', read('HMGET', KEYS[FIRST + n - 1], ids)) end
  look('B', KEYS.broadcast_jobs)
  for _, hash in ipairs({{'M', KEYS.metadata}, {'P', KEYS.pending}, {'C', KEYS.crashes}}) do look(hash[1], hash[2], true) end
  look('w', KEYS.far_jobs)
  for i, id in ipairs(ids) do
    local later = string.find(letters[i], 'w', 1, true) and redis.call('HGET', KEYS.far_jobs, id)
    local bound = later and #later >= 6 and leaf_of(due_in(later), id)
    -- A value that is too short has no due time, so it belongs to no leaf.
    local is_in_leaf = later and #later < 6
    for _, other in ipairs(bound and ids_in(leaf_at(bound)) or {}) do is_in_leaf = is_in_leaf or other == id end
    if is_in_leaf then letters[i] = letters[i] .. 'l' end
  end
  if has_groups then
    for i, id in ipairs(ids) do
      local at = string.find(letters[i], 'j', 1, true) and tonumber(redis.call('ZSCORE', KEYS.delayed, id) or nil)
      if at and at >= seating.BLOCKED then
        local name, order = seating.group_of(redis.call('HGET', KEYS.metadata, id) or redis.call('HGET', KEYS.jobs, id), id)
        local entry = name and seating.entry_of(name, order, at % PRIORITY, id)
        local is_held = entry and redis.call('ZSCORE', KEYS.grouped, seating.seat_of(name, id))
          and (seating.pause_of(name) or redis.call('ZLEXCOUNT', KEYS.grouped, '[\0' .. '6' .. name .. '\0', '(\0' .. '6' .. name .. '\1') > 0)
        if not is_held and not (entry and redis.call('ZSCORE', KEYS.grouped, entry)) then letters[i] = letters[i] .. 'g' end
      end
    end
  end
  return letters
end

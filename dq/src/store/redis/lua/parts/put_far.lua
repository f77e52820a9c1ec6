--[[ put_far: puts new jobs into the tree of jobs that are due much later.

Needs    far, far_jobs, far_leaves; far
Gives    put_far(due, ids): the jobs are due together, their records are in far_jobs, and the ids ascend
Cost     for a job alone ZRANGE, HGET and HSET; for many HSET and ZADD per leaf. A full leaf is left as it is if the jobs come after all
         that it has, and otherwise gives half of its jobs to a new one, or, to make room for many, those that come after them. Both
         read up to 67 records
]]
local put_far
do
  -- The most jobs of a leaf. A leaf that begins in front of all others begins with a minute, so that jobs which are due earlier and earlier share it.
  local MINUTE, LEAF = 60000, 67
  -- include order.lua
  local function following_of(bound)
    return redis.call('ZRANGE', KEYS.far, '(' .. bound, '+', 'BYLEX', 'LIMIT', '0', '1')[1]
  end
  -- Splits a full leaf in two at (due, id). Its jobs come as two lists.
  local function split(bound, ids, dues, due, id)
    local lower, upper, least, least_id = {}, {}, math.huge, nil
    for i = 1, #ids do
      if dues[i] < due or dues[i] == due and is_before(ids[i], id) then
        lower[#lower + 1] = ids[i]
      else
        upper[#upper + 1] = ids[i]
        if dues[i] < least or dues[i] == least and is_before(ids[i], least_id) then least, least_id = dues[i], ids[i] end
      end
    end
    local new_bound = string.format('%015d', least) .. least_id
    redis.call('ZADD', KEYS.far, '0', new_bound)
    put_ids(new_bound, '', upper, 1, #upper)
    if lower[1] then
      put_ids(bound, '', lower, 1, #lower)
    else
      redis.call('HDEL', KEYS.far_leaves, bound)
      redis.call('ZREM', KEYS.far, bound)
    end
    return least
  end
  -- Makes room in a full leaf for these jobs. Returns the bound of a new leaf if all of them belong there.
  local function make_room(bound, leaf, due, first, is_many)
    local ids, new_bound = ids_in(leaf), string.format('%015d', due) .. first
    -- Another program has written it.
    if not ids[1] then
      redis.call('HDEL', KEYS.far_leaves, bound)
      return
    end
    local values, dues, latest = redis.call('HMGET', KEYS.far_jobs, unpack(ids)), {}, 0
    for i = 1, #ids do
      dues[i] = values[i] and due_in(values[i]) or 0
      latest = math.max(latest, dues[i])
    end
    local is_behind = latest <= due
    for i = 1, #ids do
      is_behind = is_behind and (dues[i] < due or is_before(ids[i], first))
    end
    local following = following_of(bound)
    if is_behind or is_many then
      local next_due = following and base_of(following)
      if not is_behind then next_due = split(bound, ids, dues, due, first) end
      redis.call('ZADD', KEYS.far, '0', new_bound)
      return next_due ~= due and new_bound or nil
    end
    local sorted = {unpack(dues)}
    table.sort(sorted)
    local middle, id = sorted[math.floor(#sorted / 2) + 1], ''
    if middle == sorted[1] then
      -- Half of the jobs or more are due together, so an id has to be the bound.
      local tied = {}
      for i = 1, #ids do
        if dues[i] == middle then tied[#tied + 1] = ids[i] end
      end
      table.sort(tied, is_before)
      id = tied[math.floor(#tied / 2) + 1]
    end
    split(bound, ids, dues, middle, id)
  end
  function put_far(due, ids)
    local count, at = #ids, 1
    while at <= count do
      local bound, to, is_many = leaf_of(due, ids[at]), count, false
      if not bound then
        bound = string.format('%015d', due - due % MINUTE)
        redis.call('ZADD', KEYS.far, '0', bound)
      end
      local leaf, own = leaf_at(bound), nil
      if at < to then
        local following = following_of(bound)
        if following and base_of(following) == due then to = at end
        is_many = to - at >= LEAF / 2
      end
      to = math.min(to, at + LEAF - size_of(leaf) - 1)
      if to < at then
        own = make_room(bound, leaf, due, ids[at], is_many)
      else
        put_ids(bound, leaf, ids, at, to)
        at = to + 1
      end
      -- It and the leaves after it have only jobs of this call.
      while own and at <= count do
        to = math.min(count, at + LEAF - 1)
        put_ids(own, '', ids, at, to)
        at = to + 1
        if at <= count then
          own = string.format('%015d', due) .. ids[at]
          redis.call('ZADD', KEYS.far, '0', own)
        end
      end
    end
  end
end

--[[ put_far: puts new jobs into the tree of jobs that are due much later.

Needs    far, far_jobs; far
Gives    put_far(due, ids): the jobs are due together, their records are in far_jobs, and the ids ascend
Cost     for a job alone ZRANGE and RPUSH; for many two commands more per leaf. A full leaf is left as it is if the jobs come after all
         that it has, and otherwise gives half of its jobs to a new one, or, to make room for many, those that come after them. Both
         read up to 128 records
]]
-- The most jobs of a leaf. A leaf that begins in front of all others begins with a minute, so that jobs which are due earlier and earlier share it.
local MINUTE, LEAF = 60000, 128
-- include order.lua
local function following_of(bound)
  return redis.call('ZRANGE', far, '(' .. bound, '+', 'BYLEX', 'LIMIT', '0', '1')[1]
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
  redis.call('DEL', entries_of(bound))
  redis.call('ZADD', far, '0', new_bound)
  redis.call('RPUSH', entries_of(new_bound), unpack(upper))
  if lower[1] then redis.call('RPUSH', entries_of(bound), unpack(lower)) else redis.call('ZREM', far, bound) end
  return least
end
-- Makes room in a full leaf for these jobs. Returns the bound of a new leaf if all of them belong there.
local function make_room(bound, due, first, is_many)
  local ids, new_bound = redis.call('LRANGE', entries_of(bound), 0, -1), string.format('%015d', due) .. first
  local values, dues, latest = redis.call('HMGET', far_jobs, unpack(ids)), {}, 0
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
    redis.call('ZADD', far, '0', new_bound)
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
local function put_far(due, ids)
  local count, at, own = #ids, 1, nil
  while at <= count do
    local bound, to, is_many = own or leaf_of(due, ids[at]), count, false
    if not bound then
      bound = string.format('%015d', due - due % MINUTE)
      redis.call('ZADD', far, '0', bound)
    end
    local key = entries_of(bound)
    if at < to then
      local following = following_of(bound)
      if following and base_of(following) == due then to = at end
      is_many = to - at >= LEAF / 2
      to = math.min(to, at + math.max(LEAF - redis.call('LLEN', key), 0) - 1)
    end
    if to < at and own then
      -- It has only jobs of this call, and these come after them.
      own = string.format('%015d', due) .. ids[at]
      redis.call('ZADD', far, '0', own)
    elseif to < at then
      own = make_room(bound, due, ids[at], is_many)
    elseif at == to then
      if redis.call('RPUSH', key, ids[at]) > LEAF then
        redis.call('RPOP', key)
        own = make_room(bound, due, ids[at], is_many)
      else
        at = at + 1
      end
    else
      redis.call('RPUSH', key, unpack(ids, at, to))
      at = to + 1
    end
  end
end

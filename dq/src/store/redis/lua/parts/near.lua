--[[ near: brings jobs out of the tree of jobs that are due much later into `delayed`, with the due times that they have. To the jobs
nothing happens, so a script may do this before it reads what else it needs.

Needs    jobs, delayed, far, far_jobs, far_leaves; has_groups: field of meta; clock, bulk, far, score, groups
Gives    put_near(ids, values): puts the ids whose value in far_jobs is given into `delayed`. bring_near(ids, values): also takes them
         out of the tree
Holds    rules 1, 2: it reads each key before it writes it, and its first write is a removal
Cost     per job ZRANGE, per leaf HGET and HSET, one HDEL field, one HSET field and one ZADD member
]]
local function put_near(ids, values)
  local fields, members = {}, {}
  for i, id in ipairs(ids) do
    if values[i] then
      local record = record_in(values[i])
      fields[#fields + 1], fields[#fields + 2] = id, record
      members[#members + 1], members[#members + 2] = score(due_in(values[i]), record), id
    end
  end
  write('HSET', KEYS.jobs, fields)
  write('ZADD', KEYS.delayed, members)
  if has_groups then
    for i, id in ipairs(ids) do
      if values[i] then seating.join(id, record_in(values[i]), due_in(values[i])) end
    end
    seating.regroup()
  end
end
local function bring_near(ids, values)
  local brought, gone_of = {}, {}
  for i, id in ipairs(ids) do
    if values[i] then
      local bound = leaf_of(due_in(values[i]), id)
      brought[#brought + 1] = id
      if bound then
        gone_of[bound] = gone_of[bound] or {}
        gone_of[bound][id] = true
      end
    end
  end
  if #brought == 0 then return end
  redis.call('HLEN', KEYS.jobs)
  redis.call('ZCARD', KEYS.delayed)
  redis.call('HLEN', KEYS.far_leaves)
  write('HDEL', KEYS.far_jobs, brought)
  for bound, gone in pairs(gone_of) do leave_leaf(bound, gone) end
  put_near(ids, values)
end

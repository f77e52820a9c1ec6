--[[ near: brings jobs out of the tree of jobs that are due much later into `delayed`, with the due times that they have. To the jobs
nothing happens, so a script may do this before it reads what else it needs.

Needs    jobs, delayed, far, far_jobs; clock, bulk, far
Gives    bring_near(ids, values): of the ids whose value in far_jobs is given
Holds    rules 1, 2, 3: it reads each key before it writes it, and its first write is a removal
Cost     per job ZRANGE, LLEN and LREM, one HDEL field, one HSET field and one ZADD member
]]
local function bring_near(ids, values)
  local brought, fields, members, bounds = {}, {}, {}, {}
  for i, id in ipairs(ids) do
    if values[i] then
      local due = due_in(values[i])
      local bound = leaf_of(due, id)
      if bound then redis.call('LLEN', entries_of(bound)) end
      brought[#brought + 1] = id
      bounds[#brought] = bound or false
      fields[#fields + 1], fields[#fields + 2] = id, record_in(values[i])
      members[#members + 1], members[#members + 2] = int(due), id
    end
  end
  if #brought == 0 then return end
  redis.call('HLEN', jobs)
  redis.call('ZCARD', delayed)
  write('HDEL', far_jobs, brought)
  for i, id in ipairs(brought) do
    local bound = bounds[i]
    if bound and redis.call('LREM', entries_of(bound), 1, id) == 1 and redis.call('LLEN', entries_of(bound)) == 0 then
      redis.call('ZREM', far, bound)
    end
  end
  write('HSET', jobs, fields)
  write('ZADD', delayed, members)
end

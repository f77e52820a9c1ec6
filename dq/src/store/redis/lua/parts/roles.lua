--[[ roles: a node that stops claiming gives its roles back.

Needs    delayed, meta, wake, node; signal
Gives    leave_role(name): whether the node had it; free_roles(): both, and says so to the others where jobs wait
Holds    rule 23
Cost     two HGET
]]
local function leave_role(name)
  if redis.call('HGET', meta, name) ~= node then return false end
  redis.call('HDEL', meta, name, name .. '-until')
  return true
end
local function free_roles()
  local watched, stood_by = leave_role('watcher'), leave_role('standby')
  return (watched or stood_by) and redis.call('ZCARD', delayed) > 0
end

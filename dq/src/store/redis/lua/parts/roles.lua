--[[ roles: frees the roles of a node.

Needs    delayed, meta; node
Gives    free_role(name): returns whether the node had it. free_watcher_roles(): frees watcher and standby; returns
         whether the node had one of them and jobs wait, so that the other nodes must be signalled
Holds    rule 23
Cost     one HGET per role, one HDEL per role that is freed, one ZCARD, one HEXISTS if that finds nothing
]]
local function free_role(name)
  if redis.call('HGET', KEYS.meta, name) ~= node then return false end
  redis.call('HDEL', KEYS.meta, name, name .. '-until')
  return true
end
local function free_watcher_roles()
  local was_watcher, was_standby = free_role('watcher'), free_role('standby')
  return (was_watcher or was_standby) and (redis.call('ZCARD', KEYS.delayed) > 0 or redis.call('HEXISTS', KEYS.meta, 'far') == 1)
end

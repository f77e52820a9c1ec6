--[[ wake: frees the roles of a node that does not take what is due, and signals all nodes.

KEYS[1]  {app:topic}:delayed  ZSET     job id -> due time, ms
KEYS[2]  {app:topic}:meta     HASH     watcher, standby
KEYS[3]  {app:topic}:wake     CHANNEL  signals for every node
ARGV[1]  node

Returns  1
Holds    rules 1, 23
Cost     O(1)
]]
-- include types.lua
local node = ARGV[1]
-- include clock.lua
-- include signal.lua
-- include roles.lua
free_watcher_roles()
publish(KEYS.wake, 'due')
return 1

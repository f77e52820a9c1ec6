--[[ wake: frees the node's roles and signals the others, for a node that cannot take what is due.

KEYS[1]  {app:topic}:delayed  ZSET  job id scored by due time, ms
KEYS[2]  {app:topic}:meta     HASH  roles
KEYS[3]  {app:topic}:wake     CHANNEL of any node
ARGV[1]  node

Returns  1
Holds    rule 23
Cost     O(1)
]]
-- include types.lua
local delayed, meta, wake = KEYS[1], KEYS[2], KEYS[3]
local node = ARGV[1]
-- include clock.lua
-- include signal.lua
-- include roles.lua
free_roles()
publish(wake, 'due')
return 1

--[[ hold: renews the lease of a node that holds jobs and does nothing else.

KEYS[1]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[2]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[3]  {app:topic}:turn:NODE     STRING  the node's last executed turn
ARGV[1]  node
ARGV[2]  heard, the last turn whose answer was read
ARGV[3]  lease, ms

Returns  {turn, rows}
Holds    only where rows are and the turn is named; never creates a lease
Cost     O(log nodes)
]]
-- include types.lua
local running, leases, turns = KEYS[1], KEYS[2], KEYS[3]
local node, heard, lease = ARGV[1], ARGV[2], ARGV[3]
-- include clock.lua
-- include stand.lua
redis.call('HDEL', running, '')
redis.call('EXPIRE', turns, 86400)
return {stand()}

--[[ renew: renews the lease of a node that holds jobs, and does nothing else.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms

Returns  {sequence number, rows}
Holds    rules 1, 6, 8, 21: never creates a lease
Cost     O(log nodes)
]]
-- include types.lua
local node, last_seen, lease = ARGV[1], ARGV[2], ARGV[3]
-- include clock.lua
-- include lease.lua
redis.call('HDEL', KEYS.running, '')
redis.call('EXPIRE', KEYS.sequence, 86400)
return {update_lease()}

--[[ renew: renews the lease of a node that holds jobs and does nothing else.

KEYS[1]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[2]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  lease, ms

Returns  {sequence, rows}
Holds    only where rows are and the sequence is named; never creates a lease
Cost     O(log nodes)
]]
-- include types.lua
local running, leases, sequence_key = KEYS[1], KEYS[2], KEYS[3]
local node, last_seen, lease = ARGV[1], ARGV[2], ARGV[3]
-- include clock.lua
-- include status.lua
redis.call('HDEL', running, '')
redis.call('EXPIRE', sequence_key, 86400)
return {lease_status()}

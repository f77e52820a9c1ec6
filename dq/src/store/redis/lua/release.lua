--[[ release: the clean end of a node: takes a sequence, frees its roles; what it still holds is free for reclaim at once.

KEYS[1]  {app:topic}:delayed       ZSET    job id scored by due time, ms
KEYS[2]  {app:topic}:broadcasts       ZSET    broadcast id scored by due time, ms
KEYS[3]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[4]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms; 0: free at once, no crash is charged
KEYS[5]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[6]  {app:topic}:meta          HASH    roles
KEYS[7]  {app:topic}:wake          CHANNEL of any node
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read

Returns  {sequence, rows}
Holds    rules 6, 8
Cost     O(log nodes)
]]
-- include types.lua
local delayed, broadcasts, running, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local sequence_key, meta, wake = KEYS[5], KEYS[6], KEYS[7]
local node, last_seen = ARGV[1], ARGV[2]
-- include clock.lua
-- include signal.lua
-- include roles.lua
local taken = math.max(tonumber(redis.call('GET', sequence_key) or 0), last_seen) + 1
redis.call('HDEL', running, '')
local rows = redis.call('HLEN', running)
redis.call('ZREM', leases, node)
if rows > 0 then redis.call('ZADD', leases, 0, node) end
redis.call('SET', sequence_key, int(taken), 'EX', 86400)
if free_roles() then publish(wake, 'due') end
if leave_role('publisher') and redis.call('ZCARD', broadcasts) > 0 then publish(wake, 'broadcast') end
return {taken, rows}

--[[ release: stops a node cleanly: takes a sequence number, frees its roles, and leaves its rows for reclaim.

KEYS[1]  {app:topic}:delayed        ZSET     job id -> due time, ms
KEYS[2]  {app:topic}:broadcasts     ZSET     broadcast id -> due time, ms
KEYS[3]  {app:topic}:running:NODE   HASH     job id -> token
KEYS[4]  {app:topic}:leases         ZSET     node -> end of its lease, ms
KEYS[5]  {app:topic}:sequence:NODE  STRING   sequence number of the node
KEYS[6]  {app:topic}:meta           HASH     watcher, standby, publisher
KEYS[7]  {app:topic}:wake           CHANNEL  signals for every node
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number

Returns  {sequence number, rows}
Holds    rules 1, 6, 8, 23, 24: where rows are left, the lease ends at 0
Cost     O(log nodes)
]]
-- include types.lua
local node, last_seen = ARGV[1], ARGV[2]
-- include clock.lua
-- include signal.lua
-- include roles.lua
local sequence_number = math.max(tonumber(redis.call('GET', KEYS.sequence) or '') or 0, last_seen) + 1
redis.call('HDEL', KEYS.running, '')
local rows = redis.call('HLEN', KEYS.running)
redis.call('ZREM', KEYS.leases, node)
if rows > 0 then redis.call('ZADD', KEYS.leases, 0, node) end
redis.call('SET', KEYS.sequence, int(sequence_number), 'EX', 86400)
if free_watcher_roles() then publish(KEYS.wake, 'due') end
if free_role('publisher') and redis.call('ZCARD', KEYS.broadcasts) > 0 then publish(KEYS.wake, 'broadcast') end
return {sequence_number, rows}

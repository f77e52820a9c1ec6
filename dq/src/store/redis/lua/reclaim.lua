--[[ reclaim: RUNNING -> where each row was claimed from, for up to `limit` rows of a node that is taken for dead.

KEYS[1]  {app:topic}:jobs          HASH    job id -> record
KEYS[2]  {app:topic}:delayed       ZSET    job id scored by due time, ms
KEYS[3]  {app:topic}:unacked       ZSET    job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET    job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done          ZSET    job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:broadcasts       ZSET    broadcast id scored by due time, ms
KEYS[7]  {app:topic}:broadcast-jobs     HASH    broadcast id -> record
KEYS[8]  {app:topic}:running:NODE  HASH    job id -> token; NODE is the dead one
KEYS[9]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[10] {app:topic}:pending       HASH    job id -> pending
KEYS[11] {app:topic}:crashes       HASH    job id -> crashes, `!` when isolated
KEYS[12] {app:topic}:meta          HASH    roles
KEYS[13] {app:topic}:wake          CHANNEL of any node
ARGV[1]  node, the dead one
ARGV[2]  seen, its lease end as it was seen, ms
ARGV[3]  limit, 1..=1000
ARGV[4]  cap: how many crashes exhaust a job

Returns  {moved, left, ids dropped because nothing is kept of them}
Holds    nothing happens unless the lease ended and is the one that was seen; of a lease of 0 no crash is charged
Cost     O(limit log n)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done, broadcasts, broadcast_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local running, leases, pending_commands, crashes, meta, wake = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local node, seen, limit, cap = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include pending.lua
-- include leave.lua
local ends = tonumber(redis.call('ZSCORE', leases, node) or -1)
if ends ~= seen or ends > floor then return {0, 0, {}} end
local rows, ids, tokens = redis.call('HRANDFIELD', running, limit, 'WITHVALUES'), {}, {}
for i = 1, #rows / 2 do
  ids[i], tokens[i] = rows[2 * i - 1], rows[2 * i]
end
local records = read('HMGET', jobs, ids)
local pending_changed, lost = read('HMGET', pending_commands, ids), read('HMGET', crashes, ids)
for i, id in ipairs(ids) do
  leave(id, tokens[i], records[i] or nil, pending_of(pending_changed[i]), lost[i], 'c', '', '', ends > 0 and cap or nil)
end
redis.call('HDEL', pending_commands, '')
finish()
local left = redis.call('HLEN', running)
if left == 0 then redis.call('ZREM', leases, node) end
return {#ids, left, plan.lost}

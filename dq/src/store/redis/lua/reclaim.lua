--[[ reclaim: moves up to `limit` rows of a node whose lease has expired from RUNNING to where each was claimed from.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:running:NODE    HASH     job id -> token; NODE is the dead node
KEYS[9]  {app:topic}:leases          ZSET     node -> end of its lease, ms
KEYS[10] {app:topic}:pending         HASH     job id -> pending command
KEYS[11] {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[12] {app:topic}:meta            HASH     protocol, watcher, publisher
KEYS[13] {app:topic}:wake            CHANNEL  signals for every node
KEYS[14] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[15] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[16] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[17] {app:topic}:history         HASH     job id -> history
KEYS[18] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[19] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[20] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[21] {app:topic}:statistics      HASH     minute -> what was counted; only if the link counts
ARGV[1]  node: the dead node
ARGV[2]  seen: the end of its lease that the caller saw, ms
ARGV[3]  limit, 1..=1000
ARGV[4]  cap: how many crashes exhaust a job
ARGV[5]  the most bytes of replacements; one may have more
ARGV[6]  1: a job that becomes DEAD keeps its seat in its group

Returns  {rows moved, rows left, ids of jobs that were dropped because their record was missing}
Holds    rules 1, 2, 5, 8, 13, 19, 20, 31: does nothing unless the lease is the one that was seen and has expired; a lease
         that ends at 0 charges no crash
Cost     O(limit log n)
]]
-- include types.lua
local node, seen, limit, cap, most = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include recorder.lua
-- include score.lua
-- include groups.lua
-- include leave.lua
local lease_end = tonumber(redis.call('ZSCORE', KEYS.leases, node) or -1)
if lease_end ~= seen or lease_end > floor then return {0, 0, {}} end
local rows, ids, tokens = redis.call('HRANDFIELD', KEYS.running, limit, 'WITHVALUES'), {}, {}
for i = 1, #rows / 2 do
  ids[i], tokens[i] = rows[2 * i - 1], rows[2 * i]
end
if redis.call('EXISTS', KEYS.replacements) == 1 then
  for i = fitting({KEYS.replacements}, ids, most) + 1, #ids do ids[i] = nil end
end
local texts = metadata_of(ids)
local commands, crash_texts = read('HMGET', KEYS.pending, ids), read('HMGET', KEYS.crashes, ids)
local charged_cap = lease_end > 0 and cap or nil
for i, id in ipairs(ids) do
  leave(id, tokens[i], texts[i], parse_command(commands[i]), crash_texts[i], 'c', '', '', charged_cap, ARGV[6] == '1')
end
redis.call('HDEL', KEYS.pending, '')
write_plan()
keep_notes()
local left = redis.call('HLEN', KEYS.running)
if left == 0 then redis.call('ZREM', KEYS.leases, node) end
return {#ids, left, plan.dropped}

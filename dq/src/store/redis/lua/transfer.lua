--[[ transfer: DELAYED -> RUNNING. Claims due jobs, earliest first. Takes a sequence number and renews.

KEYS[1]  {app:topic}:jobs           HASH    job id -> record
KEYS[2]  {app:topic}:delayed        ZSET    job id -> due time, ms
KEYS[3]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[4]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[5]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[6]  {app:topic}:crashes        HASH    job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[7]  {app:topic}:meta           HASH    protocol, fence, largest, watcher, standby
KEYS[8]  {app:topic}:metadata       HASH    job id -> metadata that override those of its record
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  limit, 1..=1000
ARGV[4]  lease, ms
ARGV[5]  fallback, µs: how long a node sleeps at most
ARGV[6]  the most bytes of records; one record may have more
ARGV[7]  lookahead, ms: jobs that become due within it are claimed as well, and the node comes half of it before the head

Returns  {0, sequence number, rows} if last_seen is not the stored sequence number, otherwise {1, sequence number, rows,
         clock µs, role (0 none, 1 watcher, 2 standby watcher), how long to sleep µs, more, the node with the earliest
         lease of another node or '', the end of that lease, ids, tokens (one if all jobs share it), records, metadata
         that override theirs or {}, crash counts or {}, dropped ids}
Holds    rules 1, 2, 3, 5, 6, 8, 9, 20, 23
Cost     O(limit log delayed)
]]
-- include types.lua
local jobs, delayed, running, leases, sequence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local crashes, meta, metadata = KEYS[6], KEYS[7], KEYS[8]
local node, last_seen, limit, lease, fallback, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local lookahead = tonumber(ARGV[7])
local STANDBY_DELAY, ROLE_SLACK = 250, 200
local stored = redis.call('GET', sequence)
if stored ~= last_seen then return {0, tonumber(stored or 0), redis.call('HLEN', running)} end
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include claim.lua
local ids, tokens, records, overrides, crash_counts, dropped, sequence_number, rows = claim(delayed, floor + lookahead, limit, most)
-- include cut.lua
local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
head = head and tonumber(head)
local standby = redis.call('HMGET', meta, 'standby', 'standby-until')
-- include lapse.lua
local function is_free(holder, lapses) return not holder or holder == node or floor > tonumber(lapses or 0) end
local come_at = head and head - math.ceil(lookahead / 2)
local wake_at, role = after(fallback), 0
watcher_until, standby[2] = lapse('watcher', watcher_until, wake_at), lapse('standby', standby[2], wake_at)
local function take_role(name, time)
  wake_at = math.min(time or wake_at, wake_at)
  redis.call('HSET', meta, name, node, name .. '-until', int(math.max(wake_at, floor) + ROLE_SLACK))
end
if is_free(watcher, watcher_until) then
  role = 1
  take_role('watcher', come_at)
  if standby[1] == node then redis.call('HDEL', meta, 'standby', 'standby-until') end
elseif is_free(standby[1], standby[2]) then
  role = 2
  take_role('standby', come_at and come_at + STANDBY_DELAY)
end
local earliest_leases = redis.call('ZRANGE', leases, 0, 1, 'WITHSCORES')
local other = earliest_leases[1] == node and 3 or 1
return {
  1, sequence_number, rows, micros, role, math.max(wake_at * 1000 - micros, 0), head and head <= floor + lookahead and 1 or 0,
  earliest_leases[other] or '', tonumber(earliest_leases[other + 1] or 0), ids, tokens, records, overrides, crash_counts,
  dropped,
}

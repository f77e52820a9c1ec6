--[[ transfer: DELAYED -> RUNNING. Claims up to `limit` due jobs for one node, earliest due first; takes a sequence and renews.

KEYS[1]  {app:topic}:jobs          HASH    job id -> record
KEYS[2]  {app:topic}:delayed       ZSET    job id scored by due time, ms since the Unix epoch
KEYS[3]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[4]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[5]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[6]  {app:topic}:crashes       HASH    job id -> crashes, `!` when isolated
KEYS[7]  {app:topic}:meta          HASH    protocol, fence, roles
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  limit, 1..=1000
ARGV[4]  lease, ms
ARGV[5]  fallback, µs: when to come again if nobody tells

Returns  {0, sequence, rows} when the sequence is another, else {1, sequence, rows, clock ms, role 0..2, sleep µs, more,
         node with the earliest foreign lease or '', its end, ids, tokens or one for all, records, crash counts or {}, dropped ids}
Holds    a job id is in exactly one of delayed, running:*, unacked, dead, done; one fence for all; NODE is in leases
         exactly while running:NODE exists
Cost     O(limit log delayed)
]]
-- include types.lua
local jobs, delayed, running, leases, sequence_key, crashes, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local node, last_seen, limit, lease, fallback = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local STANDBY_DELAY, ROLE_SLACK = 250, 200
local sequence = redis.call('GET', sequence_key)
if sequence ~= last_seen then return {0, tonumber(sequence or 0), redis.call('HLEN', running)} end
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include claim.lua
local ids, tokens, records, lost, dropped, taken, rows = claim(delayed, floor, limit)
-- include cut.lua
local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
head = head and tonumber(head)
local standby = redis.call('HMGET', meta, 'standby', 'standby-until')
local function is_free(holder, ends) return not holder or holder == node or floor > tonumber(ends or 0) end
local told, role = after(fallback), 0
local function take(name, at)
  told = math.min(at or told, told)
  redis.call('HSET', meta, name, node, name .. '-until', int(math.max(told, floor) + ROLE_SLACK))
end
if is_free(known[4], known[5]) then
  role = 1
  take('watcher', head)
  if standby[1] == node then redis.call('HDEL', meta, 'standby', 'standby-until') end
elseif is_free(standby[1], standby[2]) then
  role = 2
  take('standby', head and head + STANDBY_DELAY)
end
local first = redis.call('ZRANGE', leases, 0, 1, 'WITHSCORES')
local at = first[1] == node and 3 or 1
local sleep = math.max(told * 1000 - micros, 0)
return {
  1, taken, rows, floor, role, sleep, head and head <= floor and 1 or 0, first[at] or '', tonumber(first[at + 1] or 0),
  ids, tokens, records, lost, dropped,
}

--[[ publish: publishes due broadcasts and removes them; drops those that have expired.

KEYS[1]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[2]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[3]  {app:topic}:meta            HASH     publisher, published, paused, draining, events, history, members
KEYS[4]  {app:topic}:broadcast       CHANNEL  published broadcasts: number, blank, id, line feed, record
KEYS[5]  {app:topic}:jobs            HASH     job id -> record
KEYS[6]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[7]  {app:topic}:history         HASH     job id -> history
KEYS[8]  {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[9]  {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[10] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
ARGV[1]  node
ARGV[2]  limit, 1..=1000
ARGV[3]  fallback, µs
ARGV[4]  how long after its due time a broadcast without an expiry of its own expires, ms
ARGV[5]  the most bytes of records; one may have more

Returns  {published, dropped, how long to sleep µs, more, the number of the last broadcast that was ever published}
Holds    rules 1, 5, 24, 29. The first write is a removal, before anything is published: a server that refuses writes still
         publishes, and would otherwise publish the same broadcast at each try
Cost     O(limit log broadcasts), one HSTRLEN per broadcast
]]
-- include types.lua
local node, limit, fallback, expires_after, bytes = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local ROLE_SLACK = 200
-- include clock.lua
-- include bulk.lua
-- include metadata.lua
-- include lapse.lua
local roles = redis.call('HMGET', KEYS.meta, 'publisher', 'publisher-until', 'published', 'paused', 'draining', 'events', 'history', 'members')
local publisher, publisher_until, number, paused, draining = roles[1], roles[2], tonumber(roles[3] or 0) or 0, roles[4], roles[5]
-- Numbers begin again where doubles are no longer exact: no dq counts so far.
if not (number >= 0 and number < 9007199254739991) then number = 0 end
local events, history_setting, tells_moves, note, keep_notes = roles[6], roles[7], roles[8]
-- include recorder.lua
local latest, opens_at, drained_at = floor, nil, nil
if paused or draining then
  -- rare gate.lua
  if opens_at then latest = -1 elseif drained_at then latest = math.min(latest, drained_at) end
end
local due = redis.call('ZRANGE', KEYS.broadcasts, '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
local n, ids, published, dropped = #due / 2, {}, 0, 0
for i = 1, n do ids[i] = due[2 * i - 1] end
n = fitting({KEYS.broadcast_jobs}, ids, bytes)
for i = n + 1, #ids do ids[i] = nil end
local records = read('HMGET', KEYS.broadcast_jobs, ids)
redis.call('HDEL', KEYS.broadcast_jobs, '')
local gone = {}
for i = 1, n do
  local expires = records[i] and (field(metadata_in(records[i]), FIELD.expires_at) or due[2 * i] + expires_after) or 0
  if expires < floor then
    dropped, gone[#gone + 1] = dropped + 1, ids[i]
    note('g', '', '', ids[i])
  elseif tonumber(due[2 * i]) <= latest then
    gone[#gone + 1] = ids[i]
    published = published + 1
    note('o', '', '', ids[i])
    redis.call('PUBLISH', KEYS.broadcast, int(number + published) .. ' ' .. ids[i] .. '\n' .. records[i])
  end
end
if n > 0 and #gone == n then
  redis.call('ZREMRANGEBYRANK', KEYS.broadcasts, 0, n - 1)
else
  write('ZREM', KEYS.broadcasts, gone)
end
write('HDEL', KEYS.broadcast_jobs, gone)
if published > 0 then redis.call('HSET', KEYS.meta, 'published', int(number + published)) end
keep_notes()
local head, wake_at = tonumber(redis.call('ZRANGE', KEYS.broadcasts, 0, 0, 'WITHSCORES')[2] or math.huge), after(fallback)
local more = head <= latest
if opens_at then head = opens_at elseif drained_at and head > drained_at then head = math.huge end
publisher_until = lapse('publisher', publisher_until, wake_at)
if not publisher or publisher == node or floor > (tonumber(publisher_until or '') or 0) then
  wake_at = math.min(wake_at, head)
  redis.call('HSET', KEYS.meta, 'publisher', node, 'publisher-until', int(math.max(wake_at, floor) + ROLE_SLACK))
end
return {published, dropped, math.max(wake_at * 1000 - micros, 0), more and 1 or 0, number + published}

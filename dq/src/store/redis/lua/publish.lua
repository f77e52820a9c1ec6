--[[ publish: due broadcasts -> published and gone; those that nobody served in time are dropped.

KEYS[1]  {app:topic}:broadcasts    ZSET  broadcast id scored by due time, ms
KEYS[2]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[3]  {app:topic}:meta       HASH  publisher: who is told the true head
KEYS[4]  {app:topic}:broadcast     CHANNEL of broadcasts: id, line feed, record
ARGV[1]  node
ARGV[2]  limit, 1..=1000
ARGV[3]  fallback, µs
ARGV[4]  when one without an expiry of its own expires after its due time, ms

Returns  {published, dropped, sleep µs, more}
Holds    rule 24: published and removed in one step, in order of due time. It begins with a removal: a server that refuses
         writes still publishes, and would do so again at each try
Cost     O(limit log broadcasts)
]]
-- include types.lua
local broadcasts, broadcast_jobs, meta, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local node, limit, fallback, expires_after = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ROLE_SLACK = 200
-- include clock.lua
-- include bulk.lua
-- include metadata.lua
local due = redis.call('ZRANGE', broadcasts, '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
local n, ids, published, dropped = #due / 2, {}, 0, 0
for i = 1, n do ids[i] = due[2 * i - 1] end
local records = read('HMGET', broadcast_jobs, ids)
local role = redis.call('HMGET', meta, 'publisher', 'publisher-until')
redis.call('HDEL', broadcast_jobs, '')
for i = 1, n do
  local expires = records[i] and (fixed(records[i]).expires or due[2 * i] + expires_after) or 0
  if expires < floor then
    dropped = dropped + 1
  else
    published = published + 1
    redis.call('PUBLISH', channel, ids[i] .. '\n' .. records[i])
  end
end
if n > 0 then redis.call('ZREMRANGEBYRANK', broadcasts, 0, n - 1) end
write('HDEL', broadcast_jobs, ids)
local head, told = redis.call('ZRANGE', broadcasts, 0, 0, 'WITHSCORES')[2], after(fallback)
if not role[1] or role[1] == node or floor > tonumber(role[2] or 0) then
  told = math.min(told, tonumber(head or told))
  redis.call('HSET', meta, 'publisher', node, 'publisher-until', int(math.max(told, floor) + ROLE_SLACK))
end
return {published, dropped, math.max(told * 1000 - micros, 0), head and tonumber(head) <= floor and 1 or 0}

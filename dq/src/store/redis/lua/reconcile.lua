--[[ reconcile: answers a page of the node's rows. The first page takes a sequence number. Renews nothing.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:jobs           HASH    job id -> record
KEYS[5]  {app:topic}:dead           ZSET    job id -> when it became DEAD, ms
KEYS[6]  {app:topic}:meta           HASH    born
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  cursor, '' for the first page
ARGV[4]  limit, 1..=1000

Returns  {0, sequence number, rows} if a later page names another sequence number, otherwise {1, sequence number, rows,
         each id and its token, cursor of the next page or false, dropped ids, the clock of the first `reconcile` of the topic, µs}. A row without a proper token is removed: its job
         becomes DEAD, or is dropped if it has no record
Holds    rules 1, 5, 6, 7, 8
Cost     O(page)
]]
-- include types.lua
local node, last_seen, cursor, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include clock.lua
-- include order.lua
-- include scan_rows.lua
local stored, born = redis.call('GET', KEYS.sequence), redis.call('HGET', KEYS.meta, 'born')
born = born and #born <= 16 and tonumber(string.match(born, '^%d+$') or '')
if cursor ~= '' and stored ~= last_seen then return {0, tonumber(stored or '') or 0, redis.call('HLEN', KEYS.running)} end
local page_ids, page_tokens, following = scan_rows(KEYS.running, limit, cursor)
local found, dropped = {}, {}
redis.call('HDEL', KEYS.running, '')
for i, id in ipairs(page_ids) do
  if string.match(page_tokens[i], '^%d+:%d+$') then
    found[#found + 1], found[#found + 2] = id, page_tokens[i]
  else
    redis.call('HDEL', KEYS.running, id)
    if redis.call('HEXISTS', KEYS.jobs, id) == 1 then redis.call('ZADD', KEYS.dead, floor, id) else dropped[#dropped + 1] = id end
  end
end
local rows = redis.call('HLEN', KEYS.running)
if rows == 0 then redis.call('ZREM', KEYS.leases, node) end
local sequence_number = tonumber(stored or '') or 0
if cursor == '' then
  sequence_number = math.max(sequence_number, last_seen) + 1
  redis.call('SET', KEYS.sequence, int(sequence_number), 'EX', 86400)
end
if not born then
  born = micros
  redis.call('HSET', KEYS.meta, 'born', int(born))
end
return {1, sequence_number, rows, found, following ~= '' and following, dropped, born}

--[[ reconcile: takes a new sequence with its first page and tells the node's rows; renews nothing.

KEYS[1]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[2]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[4]  {app:topic}:jobs          HASH    job id -> record
KEYS[5]  {app:topic}:dead          ZSET    job id scored by when it was given up, ms
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  after: '' is the first page; later pages continue behind this id
ARGV[4]  limit, 1..=1000

Returns  {0, sequence, rows} when a later page names another sequence, else {1, sequence, rows, ids, tokens, more, ids of rows that
         were no rows of dq and had no record: they are gone; with a record such a job is DEAD}
Holds    rule 6: max(stored, last_seen) + 1
Cost     O(rows log rows)
]]
-- include types.lua
local running, leases, sequence_key, jobs, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, last_seen, behind, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include clock.lua
-- include bulk.lua
local sequence = redis.call('GET', sequence_key)
if behind ~= '' and sequence ~= last_seen then return {0, tonumber(sequence or 0), redis.call('HLEN', running)} end
local all, ids, tokens, strange = redis.call('HGETALL', running), {}, {}, {}
for i = 1, #all, 2 do
  if not string.match(all[i + 1], '^%d+:%d+$') then
    strange[#strange + 1] = all[i]
  elseif behind == '' or all[i] > behind then
    ids[#ids + 1] = all[i]
    tokens[all[i]] = all[i + 1]
  end
end
table.sort(ids)
local kept, dropped = redis.call('HMGET', jobs, '', unpack(strange, 1, math.min(#strange, 1000))), {}
redis.call('HDEL', running, '')
for i = 1, math.min(#strange, 1000) do
  redis.call('HDEL', running, strange[i])
  if kept[i + 1] then redis.call('ZADD', dead, floor, strange[i]) else dropped[#dropped + 1] = strange[i] end
end
local rows = redis.call('HLEN', running)
if rows == 0 then redis.call('ZREM', leases, node) end
local taken = tonumber(sequence or 0)
if behind == '' then
  taken = math.max(taken, last_seen) + 1
  redis.call('SET', sequence_key, int(taken), 'EX', 86400)
end
local page, texts = {}, {}
for i = 1, math.min(limit, #ids) do
  page[i], texts[i] = ids[i], tokens[ids[i]]
end
return {1, taken, rows, page, texts, #ids > limit and 1 or 0, dropped}

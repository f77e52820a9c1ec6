--[[ reconcile: answers the node's rows, in order of their ids. Its first page takes a sequence number. Renews nothing.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:jobs           HASH    job id -> record
KEYS[5]  {app:topic}:dead           ZSET    job id -> when it became DEAD, ms
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  id to continue behind; '' for the first page
ARGV[4]  limit, 1..=1000

Returns  {0, sequence number, rows} if a later page names another sequence number, otherwise {1, sequence number, rows,
         ids, tokens, more, dropped ids}. A row without a proper token is removed: its job becomes DEAD, or is dropped
         if it has no record
Holds    rules 1, 3, 6, 7, 8
Cost     O(rows log rows)
]]
-- include types.lua
local running, leases, sequence, jobs, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, last_seen, cursor, limit = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include clock.lua
-- include bulk.lua
local stored = redis.call('GET', sequence)
if cursor ~= '' and stored ~= last_seen then return {0, tonumber(stored or 0), redis.call('HLEN', running)} end
local all, ids, tokens, malformed = redis.call('HGETALL', running), {}, {}, {}
for i = 1, #all, 2 do
  local id, token = all[i], all[i + 1]
  if not string.match(token, '^%d+:%d+$') then
    malformed[#malformed + 1] = id
  elseif cursor == '' or id > cursor then
    ids[#ids + 1] = id
    tokens[id] = token
  end
end
table.sort(ids)
local n_malformed = math.min(#malformed, 1000)
local records, dropped = redis.call('HMGET', jobs, '', unpack(malformed, 1, n_malformed)), {}
redis.call('HDEL', running, '')
for i = 1, n_malformed do
  redis.call('HDEL', running, malformed[i])
  if records[i + 1] then redis.call('ZADD', dead, floor, malformed[i]) else dropped[#dropped + 1] = malformed[i] end
end
local rows = redis.call('HLEN', running)
if rows == 0 then redis.call('ZREM', leases, node) end
local sequence_number = tonumber(stored or 0)
if cursor == '' then
  sequence_number = math.max(sequence_number, last_seen) + 1
  redis.call('SET', sequence, int(sequence_number), 'EX', 86400)
end
local page_ids, page_tokens = {}, {}
for i = 1, math.min(limit, #ids) do
  page_ids[i], page_tokens[i] = ids[i], tokens[ids[i]]
end
return {1, sequence_number, rows, page_ids, page_tokens, #ids > limit and 1 or 0, dropped}

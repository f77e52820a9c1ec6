--[[ sweep: DEAD and DONE past their retention -> gone; aged UNACKED -> RUNNING; takes a sequence and renews.

KEYS[1]  {app:topic}:jobs          HASH    job id -> record
KEYS[2]  {app:topic}:delayed       ZSET    job id scored by due time, ms
KEYS[3]  {app:topic}:unacked       ZSET    job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET    job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done          ZSET    job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[7]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[8]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[9]  {app:topic}:crashes       HASH    job id -> crashes, `!` when isolated
KEYS[10] {app:topic}:meta          HASH    fence
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  limit, 1..=1000: for each of the three
ARGV[4]  lease, ms
ARGV[5]  how long UNACKED jobs wait, ms
ARGV[6]  how long DEAD jobs are kept, ms
ARGV[7]  how many DEAD jobs are kept

Returns  {0, sequence, rows} when the sequence is another, else {1, sequence, rows, clock ms, ids, tokens or one for all, records, crash counts or {},
         pruned dead, pruned done, more, dropped ids}
Holds    as transfer; a member that waits in delayed is no member here and only leaves
Cost     O(limit log n)
]]
-- include types.lua
local jobs, delayed, unacked, dead, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local running, leases, sequence_key, crashes, meta = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local node, last_seen, limit, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local dead_most = tonumber(ARGV[7])
local sequence = redis.call('GET', sequence_key)
if sequence ~= last_seen then return {0, tonumber(sequence or 0), redis.call('HLEN', running)} end
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include claim.lua
local aged, kept_since = math.max(floor - ARGV[5], 0), math.max(floor - ARGV[6], 0)
local function waiting(ids) return read('ZMSCORE', delayed, ids) end
local function prune(place, ids)
  local elsewhere, gone = waiting(ids), {}
  for i, id in ipairs(ids) do
    if not elsewhere[i] then gone[#gone + 1] = id end
  end
  write('ZREM', place, ids)
  write('HDEL', jobs, gone)
  return #ids
end
redis.call('HDEL', crashes, '')
local pruned_done = prune(done, redis.call('ZRANGE', done, '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit))
local card = redis.call('ZCARD', dead)
local oldest, over = redis.call('ZRANGE', dead, 0, limit - 1, 'WITHSCORES'), {}
for i = 1, #oldest / 2 do
  if card - #over > dead_most or tonumber(oldest[2 * i]) <= kept_since then over[#over + 1] = oldest[2 * i - 1] end
end
local pruned_dead = prune(dead, over)
local ids, tokens, records, lost, dropped, taken, rows = claim(unacked, aged, limit, waiting)
local function is_due(place, ends)
  local head = redis.call('ZRANGE', place, 0, 0, 'WITHSCORES')[2]
  return head and tonumber(head) <= ends
end
local more = is_due(done, floor) or is_due(dead, kept_since) or redis.call('ZCARD', dead) > dead_most or is_due(unacked, aged)
return {1, taken, rows, floor, ids, tokens, records, lost, pruned_dead, pruned_done, more and 1 or 0, dropped}

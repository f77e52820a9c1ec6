--[[ exhaust: notes in the record that no attempt is left, before `final_retry` is called; it stays RUNNING; renews.

KEYS[1]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[2]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[3]  {app:topic}:turn:NODE     STRING  the node's last executed turn
KEYS[4]  {app:topic}:marks         HASH    job id -> mark
KEYS[5]  {app:topic}:jobs          HASH    job id -> record
ARGV[1]  node
ARGV[2]  heard, the last turn whose answer was read
ARGV[3]  lease, ms
ARGV[4]  id
ARGV[5]  token
ARGV[6]  the new front

Returns  {turn, rows, note}: d (done), s (stale: the row is another or gone), e (under an unfenced end)
Holds    rule 15; the parking fence is the store's
Cost     O(log nodes)
]]
-- include types.lua
local running, leases, turns, marks, jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, heard, lease, id, token, front = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- include clock.lua
-- include front.lua
-- include marks.lua
-- include stand.lua
local note, mark = 's', mark_of(redis.call('HGET', marks, id))
local is_mine, record = redis.call('HGET', running, id) == token, redis.call('HGET', jobs, id)
redis.call('HDEL', running, '')
if is_mine and mark and mark.how and mark.fence == '' then
  note = 'e'
elseif is_mine and record then
  note = 'd'
  redis.call('HSET', jobs, id, with_front(record, front, fixed(record).parked))
end
local turn, rows = stand()
return {turn, rows, note}

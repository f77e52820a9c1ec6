--[[ isolate: notes that a job one crash short of its cap is about to run, alone; it stays RUNNING; renews.

KEYS[1]  {app:topic}:running:NODE  HASH    job id -> token
KEYS[2]  {app:topic}:leases        ZSET    node scored by the end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE   STRING  the node's last executed sequence
KEYS[4]  {app:topic}:pending       HASH    job id -> pending
KEYS[5]  {app:topic}:crashes       HASH    job id -> crashes, `!` when isolated
ARGV[1]  node
ARGV[2]  last_seen, the last sequence whose answer was read
ARGV[3]  lease, ms
ARGV[4]  id
ARGV[5]  token

Returns  {sequence, rows, note}: d (done), s (stale: the row is another or gone), e (under an unfenced end)
Holds    rule 19: only isolated jobs are charged the last crash
Cost     O(log nodes)
]]
-- include types.lua
local running, leases, sequence_key, pending_commands, crashes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, last_seen, lease, id, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- include clock.lua
-- include pending.lua
-- include status.lua
local note, pending = 's', pending_of(redis.call('HGET', pending_commands, id))
local is_mine = redis.call('HGET', running, id) == token
local count = crashes_of(redis.call('HGET', crashes, id))
redis.call('HDEL', running, '')
if is_mine and pending and pending.how and pending.fence == '' then
  note = 'e'
elseif is_mine then
  note = 'd'
  redis.call('HSET', crashes, id, crashes_text(count, true))
end
local sequence, rows = lease_status()
return {sequence, rows, note}

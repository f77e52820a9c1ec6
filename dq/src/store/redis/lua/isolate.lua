--[[ isolate: notes that a quarantined job is about to run alone. The job stays RUNNING. Renews.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:pending        HASH    job id -> pending command
KEYS[5]  {app:topic}:crashes        HASH    job id -> crashes, with `!` behind the number of an isolated run
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  id
ARGV[5]  token

Returns  {sequence number, rows, note}; the note is d (done), s (stale: the row has another token or is gone) or
         e (ended: the job is under an unfenced end)
Holds    rules 6, 8, 10, 13, 19
Cost     O(log nodes)
]]
-- include types.lua
local running, leases, sequence, pending, crashes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, last_seen, lease, id, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- include clock.lua
-- include pending.lua
-- include lease.lua
local note, command = 's', parse_command(redis.call('HGET', pending, id))
local is_own = redis.call('HGET', running, id) == token
local count = parse_crashes(redis.call('HGET', crashes, id))
redis.call('HDEL', running, '')
if is_own and is_unfenced_end(command) then
  note = 'e'
elseif is_own then
  note = 'd'
  redis.call('HSET', crashes, id, crashes_text(count, true))
end
local sequence_number, rows = update_lease()
return {sequence_number, rows, note}

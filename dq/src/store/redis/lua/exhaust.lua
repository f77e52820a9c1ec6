--[[ exhaust: notes in the record that no attempt is left, before `final_retry`. The job stays RUNNING. Renews.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:pending        HASH    job id -> pending command
KEYS[5]  {app:topic}:jobs           HASH    job id -> record
KEYS[6]  {app:topic}:metadata       HASH    job id -> metadata that override those of its record
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  id
ARGV[5]  token
ARGV[6]  new metadata, without the parking fence, which belongs to the store

Returns  {sequence number, rows, note}; the note is d (done), s (stale: the row has another token or is gone) or
         e (ended: the job is under an unfenced end)
Holds    rules 6, 8, 10, 13, 15
Cost     O(log nodes)
]]
-- include types.lua
local node, last_seen, lease, id, token, new = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
-- include clock.lua
-- include bulk.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include lease.lua
local note, command = 's', parse_command(redis.call('HGET', pending, id))
local is_own, text = redis.call('HGET', running, id) == token, metadata_of({id})[1]
redis.call('HDEL', running, '')
if is_own and is_unfenced_end(command) then
  note = 'e'
elseif is_own and text then
  note = 'd'
  redis.call('HSET', metadata, id, with_metadata(text, new, fixed(text).parking_fence))
end
local sequence_number, rows = update_lease()
return {sequence_number, rows, note}

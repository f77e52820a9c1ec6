--[[ give_up: makes a job that no node can decode DEAD, with its payload.

KEYS[1]  {app:topic}:jobs      HASH  job id -> record
KEYS[2]  {app:topic}:delayed   ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked   ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead      ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:meta      HASH  protocol
KEYS[6]  {app:topic}:metadata  HASH  job id -> metadata that override those of its record
KEYS[7]  {app:topic}:far       ZSET  bounds of the leaves of jobs that are due much later
KEYS[8]  {app:topic}:far-jobs  HASH  job id -> due time and record of such a job
KEYS[9]  {app:topic}:crashes   HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
ARGV[1]  id
ARGV[2]  its payload, as it was read; all of its record, if that is none
ARGV[3]  its new metadata
ARGV[4]  the cause in them, as a digit

Returns  1 if it was made DEAD, 0 if it runs, is DONE or gone, or has another payload by now
Holds    rules 1, 2, 5: it reads all before it writes, and a repeat does nothing
Cost     O(log n), and it reads the record
]]
-- include types.lua
local id, kept, new, cause = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include far.lua
-- include near.lua
-- include metadata.lua
-- include recorder.lua
local later, record = redis.call('HGET', far_jobs, id), redis.call('HGET', jobs, id)
if not record and later then record = record_in(later) end
if not record then return 0 end
local function ends_with(text, tail) return #tail <= #text and string.sub(text, #text - #tail + 1) == tail end
-- Metadata that override those of the record may be what does not decode; then what was read ends with the payload.
if not ends_with(record, kept) and not ends_with(kept, string.sub(record, #metadata_in(record) + 1)) then return 0 end
local waits, is_parked, was_dead = redis.call('ZSCORE', delayed, id), redis.call('ZSCORE', unacked, id), redis.call('ZSCORE', dead, id)
if not (waits or is_parked or was_dead or later) then return 0 end
-- A server whose memory is full must refuse it, and to bring a job near begins with a removal.
redis.call('HSET', meta, 'protocol', PROTOCOL)
if later then bring_near({id}, {later}) end
redis.call('HSET', metadata, id, new)
redis.call('HDEL', crashes, id)
redis.call('ZREM', delayed, id)
redis.call('ZREM', unacked, id)
if not was_dead then
  redis.call('ZADD', dead, int(floor), id)
  note('x' .. cause, '', '', id)
end
keep_notes()
return 1

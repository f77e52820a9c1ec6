--[[ note: writes new metadata of a running job: that no attempt is left, before `on_exhausted`, or the state of the run; or writes how far the run has
come. The job stays RUNNING. Renews.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:pending        HASH    job id -> pending command
KEYS[5]  {app:topic}:jobs           HASH    job id -> record
KEYS[6]  {app:topic}:metadata       HASH    job id -> metadata that override those of its record
KEYS[7]  {app:topic}:crashes        HASH    job id -> crashes, with `+` (grouped) or `!` (alone) behind the number, then a blank and the notes of its run
KEYS[8]  {app:topic}:meta           HASH    events
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  id
ARGV[5]  token
ARGV[6]  new metadata, without the parking fence, which belongs to the store; or '' with a progress
ARGV[7]  progress, or ''
ARGV[8]  number: a note does nothing after one of its run with a higher one; 0: it has none

Returns  {{sequence number, rows}, note}; the note is d (done), s (stale: the row has another token or is gone) or
         e (ended: the job is under an unfenced end)
Holds    rules 6, 8, 10, 13, 15
Cost     O(log nodes)
]]
-- include types.lua
local node, last_seen, lease, id, token, new, progress, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
-- include clock.lua
-- include bulk.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include lease.lua
local answer, command = 's', parse_command(redis.call('HGET', KEYS.pending, id))
local is_own, text = redis.call('HGET', KEYS.running, id) == token, new ~= '' and metadata_of({id})[1]
local crash_text = redis.call('HGET', KEYS.crashes, id)
local count, isolation = parse_crashes(crash_text)
local last, told = string.match(crash_text or '', '^%d+[+!]? (%d+);(.*)$')
local is_late = number ~= '0' and last and tonumber(number) <= tonumber(last)
local events, history_setting, note, keep_notes, tells_moves = redis.call('HGET', KEYS.meta, 'events'), nil, nil, nil, nil
redis.call('HDEL', KEYS.running, '')
if is_own and is_unfenced_end(command) then
  answer = 'e'
elseif is_own and is_late then
  answer = 'd' -- It was on its way for too long.
elseif is_own and text then
  answer = 'd'
  if number ~= '0' then redis.call('HSET', KEYS.crashes, id, crashes_text(count, isolation) .. ' ' .. number .. ';' .. (told or '')) end
  -- A checkpoint that comes once no attempt is left is late, too.
  if field(new, FIELD.exhausted) or not field(text, FIELD.exhausted) then
    redis.call('HSET', KEYS.metadata, id, with_metadata(text, new, parking_fence_of(text)))
  end
elseif is_own and progress ~= '' then
  answer = 'd'
  redis.call('HSET', KEYS.crashes, id, crashes_text(count, isolation) .. ' ' .. number .. ';' .. progress)
  if events then
    -- rare recorder.lua
    note('m', '', progress, id)
    keep_notes()
  end
end
return {{update_lease()}, answer}

--[[ get: reads the jobs with these ids, in this order. Reads only.

KEYS[1]  {app:topic}:jobs            HASH  job id -> record
KEYS[2]  {app:topic}:delayed         ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[8]  {app:topic}:metadata        HASH  job id -> metadata that override those of its record
KEYS[9]  {app:topic}:far-jobs        HASH  job id -> due time and record of a job that is due much later
KEYS[10] {app:topic}:crashes         HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
ARGV[1]  the most bytes of records; one may have more
ARGV[2]  and on: ids, at most 1000

Returns  for each id, from the first on, false, or {state d r u x f, time ms, record, metadata that override its own, or
         '', crashes or ''}; at least one id, and no more than the bytes allow
Holds    rule 5; section 3.3: a waiting broadcast counts as DELAYED, and goes before a DONE job of its id
Cost     O(n log n)
]]
-- include bulk.lua
-- include places.lua
local ids = {unpack(ARGV, 2)}
for i = fitting({KEYS.jobs, KEYS.metadata, KEYS.broadcast_jobs, KEYS.far_jobs}, ids, tonumber(ARGV[1])) + 1, #ids do ids[i] = nil end
local records, texts = read('HMGET', KEYS.jobs, ids), read('HMGET', KEYS.metadata, ids)
local places, times = places_of(ids)
local broadcast_dues, broadcast_records = read('ZMSCORE', KEYS.broadcasts, ids), read('HMGET', KEYS.broadcast_jobs, ids)
local later, crash_texts, found = read('HMGET', KEYS.far_jobs, ids), read('HMGET', KEYS.crashes, ids), {}
for i = 1, #ids do
  found[i] = false
  if records[i] and not (places[i] == 'f' and broadcast_records[i]) then
    found[i] = {places[i], times[i] or 0, records[i], texts[i] or '', crash_texts[i] or ''}
  elseif later[i] then
    local due = #later[i] >= 6 and struct.unpack('<I6', later[i]) or 0
    found[i] = {'d', due, string.sub(later[i], 7), '', ''}
  elseif broadcast_records[i] then
    found[i] = {'d', tonumber(broadcast_dues[i] or 0), broadcast_records[i], '', ''}
  end
end
return found

--[[ export: reads a page of one place, or of the broadcasts, with all that the topic keeps of each job. Reads only.

KEYS[1]  {app:topic}:jobs      HASH  job id -> record; or broadcast-jobs
KEYS[2]  {app:topic}:delayed   ZSET  job id -> ms; or unacked, dead, done, broadcasts
KEYS[3]  {app:topic}:metadata  HASH  job id -> metadata that override those of its record
KEYS[4]  {app:topic}:far       ZSET  bounds of the leaves of jobs that are due much later
KEYS[5]  {app:topic}:far-jobs  HASH  job id -> due time and record of such a job
KEYS[6]  {app:topic}:crashes   HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[7]  {app:topic}:meta      HASH  fence
ARGV[1]  limit, 1..=1000
ARGV[2]  time of the cursor, ms; '' for the first page
ARGV[3]  id of the cursor
ARGV[4]  the most bytes of records; one may have more
ARGV[5]  d for a page of DELAYED, which has the jobs of KEYS[4] too; otherwise ''

Returns  {ids, times ms, records, metadata that override theirs or false, crashes or false, more, the last fence or false}. The
         metadata and crashes are those of jobs: a broadcast of the same id has none
Holds    rules 5, 27
Cost     O(limit + log² n)
]]
-- include types.lua
local function answer_of(ids, times, records, overrides, more)
  return {ids, times, records, overrides, #ids > 0 and redis.call('HMGET', crashes, unpack(ids)) or {}, more, redis.call('HGET', meta, 'fence')}
end
-- include a_page.lua

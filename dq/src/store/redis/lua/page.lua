--[[ page: reads a page of one place, in order of time, then id. Reads only.

KEYS[1]  {app:topic}:jobs      HASH  job id -> record
KEYS[2]  {app:topic}:delayed   ZSET  job id -> ms; or unacked, dead, done
KEYS[3]  {app:topic}:metadata  HASH  job id -> metadata that override those of its record
KEYS[4]  {app:topic}:far       ZSET  bounds of the leaves of jobs that are due much later
KEYS[5]  {app:topic}:far-jobs  HASH  job id -> due time and record of such a job
ARGV[1]  limit, 1..=1000
ARGV[2]  time of the cursor, ms; '' for the first page
ARGV[3]  id of the cursor
ARGV[4]  the most bytes of records; one may have more
ARGV[5]  d for a page of DELAYED, which has the jobs of KEYS[4] too; otherwise ''

Returns  {ids, times ms, records, metadata that override theirs or false, more}
Holds    rule 5; section 3.3: the page continues behind the cursor even if that job is gone
Cost     O(limit + log² n)
]]
-- include types.lua
local jobs, place, metadata, far, far_jobs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local limit, cursor_time, cursor_id, most = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include bulk.lua
-- include order.lua
-- include rank.lua
local first = first_rank()
local found, ids, times = redis.call('ZRANGE', place, first, first + limit - 1, 'WITHSCORES'), {}, {}
local function page_of(records, overrides, more) return {ids, times, records, overrides, more} end
if ARGV[5] == 'd' and redis.call('EXISTS', far_jobs) == 1 then
  -- include merge.lua
end
for i = 1, #found / 2 do
  ids[i], times[i] = found[2 * i - 1], tonumber(found[2 * i])
end
for i = fitting({jobs, metadata}, ids, most) + 1, #ids do ids[i] = nil end
local more = redis.call('ZCARD', place) > first + #ids and 1 or 0
return page_of(read('HMGET', jobs, ids), read('HMGET', metadata, ids), more)

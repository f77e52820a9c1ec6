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
local function answer_of(ids, times, records, overrides, more) return {ids, times, records, overrides, more} end
-- include a_page.lua

--[[ rows: reads a page of the jobs that one node holds. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:running:NODE  HASH  job id -> token
KEYS[3]  {app:topic}:metadata      HASH  job id -> metadata that override those of its record
ARGV[1]  limit, 1..=1000
ARGV[2]  cursor, '' for the first page
ARGV[3]  the most bytes of records; one may have more

Returns  {ids, tokens, records, metadata that override theirs or false, cursor of the next page or ''}
Holds    rule 5
Cost     O(page)
]]
-- include types.lua
local jobs, running, metadata = KEYS[1], KEYS[2], KEYS[3]
local limit, cursor, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
-- include bulk.lua
-- include order.lua
-- include scan_rows.lua
local function fitting_of(ids) return fitting({jobs, metadata}, ids, most) end
local ids, tokens, following = scan_rows(limit, cursor, fitting_of)
return {ids, tokens, read('HMGET', jobs, ids), read('HMGET', metadata, ids), following}

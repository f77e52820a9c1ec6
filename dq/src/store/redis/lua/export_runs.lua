--[[ export_runs: reads a page of the jobs that one node holds, with all that the topic keeps of each. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:running:NODE  HASH  job id -> token
KEYS[3]  {app:topic}:metadata      HASH  job id -> metadata that override those of its record
KEYS[4]  {app:topic}:crashes       HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[5]  {app:topic}:pending       HASH  job id -> pending command
KEYS[6]  {app:topic}:replacements  HASH  job id -> record of the replacement that waits for the end of its run
KEYS[7]  {app:topic}:meta          HASH  fence
ARGV[1]  limit, 1..=1000
ARGV[2]  cursor, '' for the first page
ARGV[3]  the most bytes of records; one may have more

Returns  {ids, tokens, records, metadata that override theirs or false, crashes or false, pending commands or false, records of
         replacements or false, cursor of the next page or '', the clock ms, the last fence or false}
Holds    rules 5, 27
Cost     O(page)
]]
-- include types.lua
local limit, cursor, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
-- include clock.lua
-- include bulk.lua
-- include order.lua
-- include scan_rows.lua
local function fitting_of(ids) return fitting({jobs, metadata, replacements}, ids, most) end
local ids, tokens, following = scan_rows(limit, cursor, fitting_of)
return {
  ids, tokens, read('HMGET', jobs, ids), read('HMGET', metadata, ids), read('HMGET', crashes, ids), read('HMGET', pending, ids),
  read('HMGET', replacements, ids), following, floor, redis.call('HGET', meta, 'fence'),
}

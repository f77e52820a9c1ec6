--[[ rows: reads a page of the jobs that one node holds, in order of their ids. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:running:NODE  HASH  job id -> token
ARGV[1]  limit, 1..=1001
ARGV[2]  id to continue behind; '' for the first page

Returns  {ids, tokens, records}
Holds    rule 5
Cost     O(rows log rows)
]]
-- include types.lua
local jobs, running = KEYS[1], KEYS[2]
local limit, cursor = tonumber(ARGV[1]), ARGV[2]
-- include bulk.lua
local ids = {}
for _, id in ipairs(redis.call('HKEYS', running)) do
  if cursor == '' or id > cursor then ids[#ids + 1] = id end
end
table.sort(ids)
for i = #ids, limit + 1, -1 do ids[i] = nil end
return {ids, read('HMGET', running, ids), read('HMGET', jobs, ids)}

--[[ audit: finds jobs whose place another program removed: they have a record, and neither a place nor a row. Those that are due much
later have their due time in their record, so they come near at once; the others stay as they are.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:delayed       ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked       ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead          ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done          ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:leases        ZSET  node -> end of its lease, ms
KEYS[7]  {app:topic}:meta          HASH  largest, far-lost
KEYS[8]  {app:topic}:far           ZSET  bounds of the leaves of jobs that are due much later
KEYS[9]  {app:topic}:far-jobs      HASH  job id -> due time and record of such a job
KEYS[10] {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  cursor, '' for the first page
ARGV[2]  about how many records to look at, 1..=1000
ARGV[3]  about how many bytes they have
ARGV[4]  and on: the nodes whose rows are in KEYS

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, ids that came near, lost ids, cursor of the
         next page or ''}. The cursor of a page of later jobs is `f`, `far-lost` as it was before the first of them, `:` and the
         cursor of HSCAN
Holds    rules 2, 5
Cost     O(page + nodes)
]]
-- include types.lua
local cursor, limit, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local NODES = {unpack(ARGV, 4)}
-- include clock.lua
-- include bulk.lua
-- include places.lua
-- include holders.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
-- HSCAN answers the records too, so their size bounds how many are looked at.
local largest = redis.call('HGET', meta, 'largest')
local count = largest and math.max(1, math.min(limit, math.floor(most / largest))) or 1
local lost_before, later = string.match(cursor, '^f(%d*):(%d+)$')
if later then
  -- include far.lua
  -- include near.lua
  local answer, ids, values = redis.call('HSCAN', far_jobs, later, 'COUNT', count), {}, {}
  for i = 1, #answer[2], 2 do
    local id, value = answer[2][i], answer[2][i + 1]
    local bound = leaf_of(due_in(value), id)
    if not bound or not redis.call('LPOS', entries_of(bound), id) then
      ids[#ids + 1], values[#values + 1] = id, value
    end
  end
  bring_near(ids, values)
  local is_last = answer[1] == '0'
  if is_last and (redis.call('HGET', meta, 'far-lost') or '') == lost_before then redis.call('HDEL', meta, 'far-lost') end
  return {0, ids, {}, is_last and '' or 'f' .. lost_before .. ':' .. answer[1]}
end
local answer, ids = redis.call('HSCAN', jobs, cursor == '' and '0' or cursor, 'COUNT', count), {}
for i = 1, #answer[2], 2 do ids[#ids + 1] = answer[2][i] end
local following = answer[1]
if following == '0' then
  following = redis.call('HLEN', far_jobs) > 0 and 'f' .. (redis.call('HGET', meta, 'far-lost') or '') .. ':0' or ''
end
return {0, {}, lost_among(ids), following}

--[[ page: reads a page of one place, or of the broadcasts, in order of time, then id. It begins after the cursor, even if the job of
the cursor is gone. Reads only.

KEYS[1]  {app:topic}:jobs        HASH  job id -> record; or broadcast-jobs
KEYS[2]  {app:topic}:delayed     ZSET  job id -> ms; or unacked, dead, done, broadcasts
KEYS[3]  {app:topic}:metadata    HASH  job id -> metadata that override those of its record
KEYS[4]  {app:topic}:far         ZSET  bounds of the leaves of jobs that are due much later
KEYS[5]  {app:topic}:far-jobs    HASH  job id -> due time and record of such a job
KEYS[6]  {app:topic}:far-leaves  HASH  bound -> ids of the leaf, as a list of MessagePack
KEYS[7]  {app:topic}:crashes     HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[8]  {app:topic}:meta        HASH  fence
ARGV[1]  limit, 1..=1000
ARGV[2]  time of the cursor, ms; '' for the first page
ARGV[3]  id of the cursor
ARGV[4]  the most bytes of records; one may have more
ARGV[5]  d for a page of DELAYED, which has the jobs of KEYS[4] too; otherwise ''
ARGV[6]  e for an export, which has the crashes and the last fence too; otherwise ''

Returns  {more, the last fence or false, jobs}, each job as {id, time ms, record or false, metadata that override its own or false, crashes or
         false}. Only an export has the fence and crashes. The metadata and crashes are those of jobs: a broadcast of the same id has none
Holds    rules 5, 27
Cost     O(limit + log² n): two ZCOUNT, and one ZRANGE per halving of the jobs that have the time of the cursor
]]
local is_export = ARGV[6] == 'e'
local place, limit, cursor_time, cursor_id, most = KEYS.delayed, tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
-- include bulk.lua
-- include order.lua
local function int(n) return string.format('%d', n) end
local function rank_of(shift)
  if cursor_time == '' then return 0 end
  local at = int(shift + tonumber(cursor_time))
  local low = redis.call('ZCOUNT', place, '-inf', '(' .. at)
  local high = redis.call('ZCOUNT', place, '-inf', at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(cursor_id, redis.call('ZRANGE', place, middle, middle)[1]) then high = middle else low = middle + 1 end
  end
  return low
end
-- include shifts.lua
local first, found, ids, times = nil, nil, {}, {}
if ARGV[5] == 'd' and shifts[2] then
  -- rare pages.lua
else
  first = rank_of(0)
  found = redis.call('ZRANGE', place, first, first + limit - 1, 'WITHSCORES')
end
local function answer_of(records, overrides, more)
  local crash_texts, rows = is_export and read('HMGET', KEYS.crashes, ids) or {}, {}
  for i, id in ipairs(ids) do
    rows[i] = {id, times[i], records[i] or false, overrides[i] or false, crash_texts[i] or false}
  end
  return {more, is_export and redis.call('HGET', KEYS.meta, 'fence'), rows}
end
if ARGV[5] == 'd' and redis.call('EXISTS', KEYS.far_jobs) == 1 then
  -- rare merge.lua
end
for i = 1, #found / 2 do
  ids[i], times[i] = found[2 * i - 1], tonumber(found[2 * i])
end
for i = fitting({KEYS.jobs, KEYS.metadata}, ids, most) + 1, #ids do ids[i] = nil end
local more = redis.call('ZCARD', place) > first + #ids and 1 or 0
return answer_of(read('HMGET', KEYS.jobs, ids), read('HMGET', KEYS.metadata, ids), more)

--[[ repair: repairs one mismatch that `examine` found, if it is still there. It removes no record, but for one that the topic has twice.

KEYS[1]  {app:topic}:jobs            HASH  job id -> record
KEYS[2]  {app:topic}:delayed         ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[8]  {app:topic}:leases          ZSET  node -> end of its lease, ms
KEYS[9]  {app:topic}:meta            HASH  protocol, retains, largest
KEYS[10] {app:topic}:far             ZSET  bounds of the leaves of jobs that are due much later
KEYS[11] {app:topic}:far-jobs        HASH  job id -> due time and record of such a job
KEYS[12] {app:topic}:metadata        HASH  job id -> metadata that override those of its record
KEYS[13] {app:topic}:pending         HASH  job id -> pending command
KEYS[14] {app:topic}:crashes         HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[15] {app:topic}:schedules       ZSET  ids of schedules, all with score 0
KEYS[16] {app:topic}:running:NODE    HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  the letter of the mismatch, as in `examine.rs`
ARGV[2]  its id
ARGV[3]  its detail
ARGV[4]  how long the lease of a node is that has rows and none, ms
ARGV[5]  and on: the nodes whose rows are in KEYS

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, 1 if it was repaired}
Holds    rules 1, 2, 5, 8: every repair looks again at what it repairs, so one that is repeated does nothing
Cost     O(nodes + log n)
]]
-- include types.lua
local kind, id, detail, lease = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local NODES = {unpack(ARGV, 5)}
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include far.lua
-- include near.lua
-- include places.lua
-- include holders.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
local function has_record() return redis.call('HEXISTS', jobs, id) == 1 end
local function rows_of(name)
  for n, node in ipairs(NODES) do
    if node == name then return KEYS[FIRST + n - 1] end
  end
end
-- A node has a lease exactly while it has rows.
local function remove_row(node)
  local rows = rows_of(node)
  local removed = rows and redis.call('HDEL', rows, id) or 0
  if rows and redis.call('HLEN', rows) == 0 then redis.call('ZREM', leases, node) end
  return removed
end
-- The row of the newest run, otherwise the place that every query names.
local function keep_one_place()
  local holder, newest = nil, -1
  for n, node in ipairs(NODES) do
    local token = redis.call('HGET', KEYS[FIRST + n - 1], id)
    local fence = token and (tonumber(string.match(token, '^(%d+):')) or 0)
    if fence and fence > newest then holder, newest = node, fence end
  end
  local removed, is_kept = 0, holder ~= nil
  for _, node in ipairs(NODES) do
    if node ~= holder then removed = removed + remove_row(node) end
  end
  for _, place in ipairs({delayed, unacked, dead, done}) do
    if redis.call('ZSCORE', place, id) then
      if is_kept then removed = removed + redis.call('ZREM', place, id) end
      is_kept = true
    end
  end
  return removed
end
-- Only of two records that are the same. The one in `jobs` is kept if it has a place.
local function keep_one_record()
  local value = redis.call('HGET', far_jobs, id)
  if not value or record_in(value) ~= redis.call('HGET', jobs, id) then return 0 end
  if #lost_among({id}) == 1 then return redis.call('HDEL', jobs, id) end
  local bound = leaf_of(due_in(value), id)
  redis.call('HDEL', far_jobs, id)
  leave_leaf(bound, id)
  return 1
end
local function note_in_meta()
  if id ~= 'largest' then return redis.call('HEXISTS', meta, id) == 0 and redis.call('HSET', meta, id, detail) or 0 end
  if tonumber(detail) <= tonumber(largest or 0) then return 0 end
  redis.call('HSET', meta, id, detail)
  return 1
end
local repaired = 0
if kind == 'p' then
  local place = ({d = delayed, u = unacked, x = dead, f = done, b = broadcasts})[detail]
  local records = detail == 'b' and broadcast_jobs or jobs
  if place and redis.call('HEXISTS', records, id) == 0 then repaired = redis.call('ZREM', place, id) end
elseif kind == 'r' then
  if not has_record() then repaired = remove_row(detail) end
elseif kind == 't' then
  if has_record() then repaired = keep_one_place() end
elseif kind == 'v' then
  repaired = keep_one_record()
elseif kind == 'a' then
  local rows = rows_of(id)
  if rows and redis.call('HLEN', rows) > 0 and not redis.call('ZSCORE', leases, id) then
    repaired = redis.call('ZADD', leases, int(floor + lease), id)
  end
elseif kind == 'l' then
  local rows = rows_of(id)
  if rows and redis.call('HLEN', rows) == 0 then repaired = redis.call('ZREM', leases, id) end
elseif kind == 'n' then
  local value = redis.call('HGET', far_jobs, id)
  local bound = value and leaf_of(due_in(value), id)
  if value and not has_record() and not (bound and redis.call('LPOS', entries_of(bound), id)) then
    bring_near({id}, {value})
    repaired = 1
  end
elseif kind == 's' then
  if has_record() then repaired = redis.call('ZADD', schedules, 0, id) end
elseif kind == 'e' then
  local key = ({M = metadata, P = pending, C = crashes})[detail]
  if key and not has_record() then repaired = redis.call('HDEL', key, id) end
elseif kind == 'm' then
  repaired = note_in_meta()
end
return {0, repaired}

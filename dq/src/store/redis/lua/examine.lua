--[[ examine: reads a page of one key of a topic, and says of each id in it where the topic has it. Reads only.

KEYS[1]  {app:topic}:jobs            HASH  job id -> record
KEYS[2]  {app:topic}:delayed         ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[8]  {app:topic}:leases          ZSET  node -> end of its lease, ms
KEYS[9]  {app:topic}:meta            HASH  protocol, retains, largest, priorities, groups, far-lost, fence
KEYS[10] {app:topic}:far             ZSET  bounds of the leaves of jobs that are due much later
KEYS[11] {app:topic}:far-jobs        HASH  job id -> due time and record of such a job
KEYS[12] {app:topic}:far-leaves      HASH  bound -> ids of the leaf, as a list of MessagePack
KEYS[13] {app:topic}:metadata        HASH  job id -> metadata that override those of its record
KEYS[14] {app:topic}:pending         HASH  job id -> pending command
KEYS[15] {app:topic}:crashes         HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[16] {app:topic}:schedules       ZSET  ids of schedules, all with score 0
KEYS[17] {app:topic}:grouped         ZSET  waiting jobs and seats of groups, all with score 0
KEYS[18] {app:topic}:running:NODE    HASH  job id -> token; and on: of each node in ARGV
ARGV[1]  where the page begins, as an answer said; '' for the first page
ARGV[2]  about how many entries to look at, 1..=1000
ARGV[3]  about how many bytes they have
ARGV[4]  and on: the nodes whose rows are in KEYS, in the order of their names

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, where the next page begins or '', the number of the
         key that was read in PARTS or 12 for rows, entries looked at, each id and where it is as letters of the part `letters`, the node whose rows these are or
         '', 1 if they are none and it has a lease, far-lost of meta as it was before all far jobs were read, the last fence in a page of
         jobs or false, each field of NOTES of meta, false where it is missing, and what it should be for the jobs of this page, 0 if these
         need none}
Holds    rules 2, 5, 8
Cost     O(page * nodes)
]]
local position, limit, most, NODES = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {unpack(ARGV, 4)}
-- include clock.lua
-- include bulk.lua
-- include metadata.lua
-- include far.lua
local has_groups = redis.call('HGET', KEYS.meta, 'groups')
-- include groups.lua
-- include order.lua
-- include holders.lua
-- include letters.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
-- In this order; the rows of the nodes follow.
local PARTS = {KEYS.jobs, KEYS.far_jobs, KEYS.delayed, KEYS.unacked, KEYS.dead, KEYS.done, KEYS.broadcasts, KEYS.broadcast_jobs, KEYS.metadata, KEYS.pending, KEYS.crashes}
local NOTES = {'protocol', 'retains', 'largest', 'priorities', 'groups'}
local notes, needed, at = redis.call('HMGET', KEYS.meta, unpack(NOTES)), {0, 0, 0, 0, 0}, 1
-- A position is the number of the part, the cursor in it, and far-lost or the node.
local part, cursor, rest = string.match(position, '^(%d+):(%d+):(.*)$')
part, cursor, rest = tonumber(part or 1), cursor or '0', rest or ''
local key, count, page = PARTS[part], math.min(limit, 200), {'0', {}}
if key == KEYS.metadata then count = math.min(limit, 50) end -- each may have a state of 64 KiB
if part > #PARTS then
  while NODES[at] and is_before(NODES[at], rest) do at = at + 1 end
  if NODES[at] ~= rest then cursor = '0' end
  key, rest = KEYS[FIRST + at - 1], NODES[at] or ''
end
if key == KEYS.jobs or key == KEYS.broadcast_jobs then
  -- The scan of a hash answers the values too, so their size bounds how many are looked at.
  local largest = tonumber(notes[3] or '')
  count = largest and largest > 0 and math.max(1, math.min(limit, math.floor(most / largest))) or math.min(limit, 10)
end
if part > 2 and part < 8 then
  page = redis.call('ZSCAN', key, cursor, 'COUNT', limit)
elseif key then
  page = redis.call('HSCAN', key, cursor, 'COUNT', count)
end
local ids, following = {}, ''
if part < 3 and #page[2] > 0 then needed[1] = PROTOCOL end
if key == KEYS.done and #page[2] > 0 then needed[2] = 1 end
for i = 1, #page[2], 2 do
  -- A job is looked at where its record is.
  if part == 1 or redis.call('HEXISTS', KEYS.jobs, page[2][i]) == 0 then ids[#ids + 1] = page[2][i] end
  if part == 1 then
    local record = page[2][i + 1]
    needed[3] = math.max(needed[3], #record)
    if field(record, FIELD.retain) then needed[2] = 1 end
    if field(record, FIELD.priority) then needed[4] = 1 end
    if field(record, FIELD.group) then needed[4], needed[5] = 1, 1 end
  end
end
local node = part > #PARTS and rest or ''
local is_idle = node ~= '' and redis.call('HLEN', key) == 0 and redis.call('ZSCORE', KEYS.leases, node)
if page[1] ~= '0' then
  following = part .. ':' .. page[1] .. ':' .. rest
elseif part <= #PARTS then
  following = part + 1 .. ':0:' .. (part == 1 and redis.call('HGET', KEYS.meta, 'far-lost') or '')
elseif NODES[at + 1] then
  following = part .. ':0:' .. NODES[at + 1]
end
local function pairs_of(list, other)
  local all = {}
  for i = 1, #list do all[2 * i - 1], all[2 * i] = list[i], other[i] end
  return all
end
return {
  0, following, part, #page[2] / 2, pairs_of(ids, letters_of(ids)), node, is_idle and 1 or 0, part == 2 and rest or '',
  part == 1 and redis.call('HGET', KEYS.meta, 'fence'), pairs_of(notes, needed),
}

--[[ examine: reads a page of one part of a topic, and finds where its keys do not agree. Reads only.

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
ARGV[1]  the part: l (leases), j (jobs), w (later jobs), d u x f b (places), B (records of broadcasts), M P C (metadata, pending and
         crashes), r (rows of the first node)
ARGV[2]  cursor of the scan, 0 for the first page
ARGV[3]  about how many entries to look at, 1..=1000
ARGV[4]  about how many bytes they have
ARGV[5]  and on: the nodes whose rows are in KEYS. For l and j all nodes with a lease must be among them

Returns  {1, all nodes with a lease} if one is missing, otherwise {0, cursor of the next page or 0, entries looked at, then of each
         mismatch its letter as in `examine.rs`, its id and its detail}
Holds    rules 2, 5, 8
Cost     O(page * nodes)
]]
-- include types.lua
local part, cursor, limit, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local NODES = {unpack(ARGV, 5)}
-- include clock.lua
-- include bulk.lua
-- include far.lua
-- include places.lua
-- include holders.lua
local answer = {0, '0', 0}
local function note(letter, id, detail)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3] = letter, id, detail or ''
end
local function scan(command, key, count)
  local read_page = redis.call(command, key, cursor, 'COUNT', count)
  answer[2], answer[3] = read_page[1], #read_page[2] / 2
  return read_page[2]
end
-- The scan of a hash answers the values too, so their size bounds how many are looked at.
local largest = tonumber(redis.call('HGET', meta, 'largest') or '')
local by_size = largest and largest > 0 and math.max(1, math.min(limit, math.floor(most / largest))) or math.min(limit, 10)
local function has_record(id) return redis.call('HEXISTS', part == 'b' and broadcast_jobs or jobs, id) == 1 end
local function is_in_leaf(id, value)
  local bound = leaf_of(due_in(value), id)
  return bound and redis.call('LPOS', entries_of(bound), id)
end
if part == 'l' or part == 'j' then
  local holders = unnamed_holders()
  if holders then return {1, holders} end
end
if part == 'l' then
  for n, node in ipairs(NODES) do
    if redis.call('HLEN', KEYS[FIRST + n - 1]) == 0 and redis.call('ZSCORE', leases, node) then note('l', node) end
  end
  local holds = redis.call('HLEN', jobs) + redis.call('HLEN', far_jobs) > 0
  if holds and redis.call('HEXISTS', meta, 'protocol') == 0 then note('m', 'protocol', PROTOCOL) end
  if redis.call('ZCARD', done) > 0 and redis.call('HEXISTS', meta, 'retains') == 0 then note('m', 'retains', '1') end
elseif part == 'j' then
  local found, ids, longest, retains = scan('HSCAN', jobs, by_size), {}, largest or 0, false
  for i = 1, #found, 2 do
    local id, record = found[i], found[i + 1]
    ids[#ids + 1] = id
    longest = math.max(longest, #record)
    local first, flags = string.byte(record, 1, 2)
    -- The second bit of the flags of a record of format 9: it has a retention.
    retains = retains or flags and math.floor(first / 16) == 9 and bit.band(flags, 2) == 2
  end
  local letters = {}
  for i = 1, #ids do letters[i] = '' end
  local function mark(letter, values)
    for i = 1, #ids do
      if values[i] then letters[i] = letters[i] .. letter end
    end
  end
  mark('d', read('ZMSCORE', delayed, ids))
  mark('u', read('ZMSCORE', unacked, ids))
  mark('x', read('ZMSCORE', dead, ids))
  mark('f', read('ZMSCORE', done, ids))
  for n = 1, #NODES do mark('r', read('HMGET', KEYS[FIRST + n - 1], ids)) end
  local has_later = redis.call('EXISTS', far_jobs) == 1
  for i, id in ipairs(ids) do
    local is_later = has_later and redis.call('HEXISTS', far_jobs, id) == 1
    if is_later then note('v', id) elseif letters[i] == '' then note('o', id) end
    if #letters[i] > 1 then note('t', id, letters[i]) end
    if string.sub(id, 1, 12) == 'dq:schedule:' and not redis.call('ZSCORE', schedules, id) then note('s', id) end
  end
  -- A record may grow a little; only much larger answers do harm.
  if longest > 2 * (largest or 0) then note('m', 'largest', int(longest)) end
  if retains and redis.call('HEXISTS', meta, 'retains') == 0 then note('m', 'retains', '1') end
elseif part == 'w' then
  local found = scan('HSCAN', far_jobs, math.min(limit, 200))
  for i = 1, #found, 2 do
    if #found[i + 1] >= 6 and not is_in_leaf(found[i], found[i + 1]) then note('n', found[i]) end
  end
elseif part == 'B' then
  local found = scan('HSCAN', broadcast_jobs, by_size)
  for i = 1, #found, 2 do
    if not redis.call('ZSCORE', broadcasts, found[i]) then note('b', found[i]) end
  end
elseif part == 'M' or part == 'P' or part == 'C' then
  local key = ({M = metadata, P = pending, C = crashes})[part]
  local found = scan('HSCAN', key, math.min(limit, 200))
  for i = 1, #found, 2 do
    if not has_record(found[i]) then note('e', found[i], part) end
  end
elseif part == 'r' then
  local found = scan('HSCAN', KEYS[FIRST], limit)
  for i = 1, #found, 2 do
    if not has_record(found[i]) then note('r', found[i], NODES[1]) end
  end
else
  local key = ({d = delayed, u = unacked, x = dead, f = done, b = broadcasts})[part]
  local found = scan('ZSCAN', key, limit)
  for i = 1, #found, 2 do
    if not has_record(found[i]) then note('p', found[i], part) end
  end
end
return answer

--[[ recover: puts jobs back whose place another program removed. A pending command takes effect, as at the end of a run; a
job that was parked becomes UNACKED, and any other DEAD.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[8]  {app:topic}:leases          ZSET     node -> end of its lease, ms
KEYS[9]  {app:topic}:pending         HASH     job id -> pending command
KEYS[10] {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[11] {app:topic}:meta            HASH     protocol, watcher, publisher
KEYS[12] {app:topic}:wake            CHANNEL  signals for every node
KEYS[13] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[14] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[15] {app:topic}:running:NODE    HASH     job id -> token; and on: of each node in ARGV
ARGV[1]  the most bytes of replacements; one may have more
ARGV[2]  n: the number of nodes whose rows are in KEYS
ARGV[3]  and on: n nodes; then ids that an audit found, at most 1000

Returns  {1, all nodes with a lease} if ARGV does not name all of them, otherwise {0, {}, ids that were put back, ids that
         were looked at}: as many of the ids, from the first on, as the bytes allow
Holds    rules 1, 2, 5, 13: a job that has a place or a row by now is left as it is
Cost     O(n log n)
]]
-- include types.lua
local most, nodes = tonumber(ARGV[1]), tonumber(ARGV[2])
local NODES = {unpack(ARGV, 3, 2 + nodes)}
-- include version.lua
-- include clock.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include places.lua
-- include recorder.lua
local node = ''
-- include leave.lua
-- include holders.lua
local holders = unnamed_holders()
if holders then return {1, holders} end
local ids = {unpack(ARGV, 3 + nodes)}
for i = fitting({replacements}, ids, most) + 1, #ids do ids[i] = nil end
local lost = {}
local unplaced = lost_among(ids)
local texts = metadata_of(unplaced)
local commands, crash_texts = read('HMGET', pending, unplaced), read('HMGET', crashes, unplaced)
redis.call('HDEL', pending, '')
for i, id in ipairs(unplaced) do
  if texts[i] then
    lost[#lost + 1] = id
    leave(id, '0:0', texts[i], parse_command(commands[i]), crash_texts[i], 'l', '', '')
  end
end
plan.removed_rows = {}
write_plan()
keep_notes()
return {0, {}, lost, ids}

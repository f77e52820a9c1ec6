--[[ add: puts new jobs into DELAYED, among the broadcasts, or into the pending command of a running id.

KEYS[1]  {app:topic}:jobs            HASH     job id -> record
KEYS[2]  {app:topic}:delayed         ZSET     job id -> due time, ms
KEYS[3]  {app:topic}:broadcasts      ZSET     broadcast id -> due time, ms
KEYS[4]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[5]  {app:topic}:meta            HASH     protocol, retains, priorities, largest, watcher, publisher, draining, delay, waiting, group_waiting, taken, rate, group_rate, rates
KEYS[6]  {app:topic}:wake            CHANNEL  signals for every node
KEYS[7]  {app:topic}:far             ZSET     bounds of the leaves of jobs that are due much later
KEYS[8]  {app:topic}:far-jobs        HASH     job id -> due time and record of such a job
KEYS[9]  {app:topic}:far-leaves      HASH     bound -> ids of the leaf, as a list of MessagePack
KEYS[10] {app:topic}:grouped         ZSET     waiting jobs and seats of groups, all with score 0
KEYS[11] {app:topic}:history         HASH     job id -> history
KEYS[12] {app:topic}:history-ends    ZSET     id of a job that is gone -> when its history is forgotten, ms
KEYS[13] {app:topic}:members         HASH     job id -> job set that the job is a member of
KEYS[14] {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[15] {app:topic}:unacked         ZSET     job id -> when it was parked, ms
KEYS[16] {app:topic}:dead            ZSET     job id -> when it became DEAD, ms
KEYS[17] {app:topic}:done            ZSET     job id -> end of its retention, ms
KEYS[18] {app:topic}:broadcast-jobs  HASH     broadcast id -> record
KEYS[19] {app:topic}:pending         HASH     job id -> pending command
KEYS[20] {app:topic}:crashes         HASH     job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[21] {app:topic}:metadata        HASH     job id -> metadata that override those of its record
KEYS[22] {app:topic}:replacements    HASH     job id -> record of the replacement that waits for the end of its run
KEYS[23] {app:topic}:leases          ZSET     node -> end of its lease, ms
KEYS[24] {app:topic}:schedules       ZSET     ids of schedules
KEYS[25] {app:topic}:taken           ZSET     id that stays taken -> until when, ms, and half a ms more if its job was deleted
KEYS[26] {app:topic}:ticks           ZSET     id of a schedule -> when its next tick is, or an earlier time
KEYS[27] {app:topic}:running:NODE    HASH     job id -> token; and on: of each node in ARGV
ARGV[1]  number of the batch
ARGV[2]  letters: s if a job is special (it has a broadcast, an expiry or a group, extends, takes its id for a time, is a member of a job set, or is a schedule), u if one takes its id for a time, g if one has a group, p if one has another priority than the normal one, e if one extends, c if an id was
         chosen, r if a job has a retention, x to start the hour of `calls` again, h if a job is a schedule, m if the jobs are members of a job set, w if its caller says how many jobs may wait, y if one has a weight, f if a job may be due much
         later: the ids of each group ascend, and no record is over 1 KiB. Without s, c, f and y, and with records up to 4 KiB, the first
         six keys are enough; with f the first nine; with w, or if the topic has groups, keeps histories, limits what waits or has members of job sets, the first fourteen
ARGV[3]  no record of the batch has more bytes
ARGV[4]  g: the number of groups, which are neighbours with the same options
ARGV[5]  n: the number of nodes whose rows are in KEYS
ARGV[6]  and on: for each group its options and the number of its jobs; then n nodes; then for each job, no id twice, its id and
         its record. The options are DUPLICATE DELIVER DUE EXPIRY without the blanks: DUPLICATE is g (the id is generated), r (reject),
         k (keep), p (replace) or e (extend; `;ms` behind the options if there is a limit after the first add); DELIVER is q (queue), b (broadcast)
         or t (both); DUE is +µs, @ms or ~µs, which the default delay of the topic takes the place of; EXPIRY is empty, or `,ms`
         after the due time, and the record has a field for it. `!ms` behind them: the id stays taken so long. `<n/m` behind all: n jobs of the
         topic and m of each group may wait, if the topic has no limit of its own; either may be empty. With m the last argument is the membership, as the part `join` has it

Returns  {'again', all nodes with a lease} if a job of the batch may be RUNNING on a node that ARGV does not name, or {'again', {}} if it
         needs more keys, and nothing was done; otherwise the answer, {'kept', answer} or {'late'}. The answer is
         `a*` (all added), or `a` and one letter per job: A (added); d r u x (exists, and its state; f also if it has
         ended and its id stays taken); z (it was deleted, and its id stays taken); D U X (replaced, and the state
         of the old job); W (the replacement waits for the end of the run); I (the replacement counts if the pending end applies);
         E, and version and due time as the part `edit` tells them (extended); L (too many bytes to extend: in another batch); M (its
         version cannot grow); T, or G, and how many wait, a comma, how many may, and `;` (the topic or the group is full); H, or J, the rate
         of the topic or of each group, as `meta` has it, and `;` (no period has room for its weight)
         A topic that drains refuses the batch with the error `DQDRAINING` and the field of meta
Holds    rules 2, 4, 13, 18, 24, 28, 29, 30: an id whose place another program removed is free
Cost     O(n log n). Per job one HSET field and one ZADD member, and one HMGET field if its id was chosen
]]
local number, flags, longest, groups, nodes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local FIRST_JOB, GENERATED, REPLACE, EXTEND, AT = 6 + 2 * groups + nodes, string.byte('gpe@', 1, 4)
-- No record up to this has its metadata in the key `metadata`.
local SMALL, MAX_READ = 4096, 1048576
local renews = flags ~= '' and string.find(flags, 'x', 1, true)
-- include version.lua
-- include clock.lua
-- include calls.lua
if draining then return redis.error_reply('DQDRAINING ' .. draining) end
if not KEYS.grouped and (has_groups or history_setting or waiting or tells_moves) then return {'again', {}} end
local chosen = flags ~= '' and string.find(flags, 'c', 1, true) and {}
if chosen then
  local at = FIRST_JOB
  for i = 6, 4 + 2 * groups, 2 do
    local behind = at + 2 * ARGV[i + 1]
    if string.byte(ARGV[i]) ~= GENERATED then
      for job = at, behind - 2, 2 do chosen[#chosen + 1] = ARGV[job] end
    end
    at = behind
  end
end
if usual then
  -- rare usual.lua
end
if taken_until and (tonumber(taken_until) or 0) <= floor then taken_until = nil end
local is_plain = groups > 0 and longest <= SMALL and (flags == '' or not string.find(flags, 's', 1, true))
if is_plain and chosen and taken_until then is_plain = false end
if is_plain and chosen then
  if #chosen == 1 then
    is_plain = redis.call('HEXISTS', KEYS.jobs, chosen[1]) == 0
  else
    is_plain = (tonumber(largest or '') or math.huge) * #chosen <= MAX_READ
    local records = is_plain and redis.call('HMGET', KEYS.jobs, unpack(chosen)) or {}
    for i = 1, #records do is_plain = is_plain and not records[i] end
  end
  if is_plain and redis.call('EXISTS', KEYS.broadcasts, KEYS.far_jobs) > 0 then
    is_plain = redis.call('EXISTS', KEYS.broadcasts) == 0
    for i = 1, #chosen do is_plain = is_plain and redis.call('HEXISTS', KEYS.far_jobs, chosen[i]) == 0 end
  end
end
local refused, bound, heavy
if flags ~= '' and ARGV[1] == number and string.find(flags, 'y', 1, true) then
  -- rare heavy_batch.lua
end
if waiting or group_waiting or flags ~= '' and string.find(flags, 'w', 1, true) then
  -- rare waiting.lua
end
if not is_plain then
  -- rare special.lua
end
if flags ~= '' and string.find(flags, 'f', 1, true) then
  -- rare plain_far.lua
end
-- The jobs are small, concern only the queue, and have ids that are certainly free.
local head = redis.call('ZRANGE', KEYS.delayed, 0, 0, 'WITHSCORES')[2]
if priorities then
  -- rare head.lua
end
local queued, n, earliest = {}, 0, math.huge
for i = 6, 4 + 2 * groups, 2 do
  local time = string.sub(ARGV[i], 4)
  local due = string.byte(ARGV[i], 3) ~= AT and after(time) or math.max(tonumber(time), floor)
  if due < earliest then earliest = due end
  local due_text = int(due)
  for _ = 1, ARGV[i + 1] do
    queued[n + 1], queued[n + 2], n = due_text, ARGV[FIRST_JOB + n], n + 2
  end
end
-- A batch has at most 1,000 jobs, which Lua can still unpack.
redis.call('HSET', KEYS.jobs, unpack(ARGV, FIRST_JOB))
local entries = queued
if flags ~= '' and string.find(flags, 'p', 1, true) then
  local list, from = ARGV, FIRST_JOB
  -- rare scored.lua
end
redis.call('ZADD', KEYS.delayed, unpack(entries))
if history_setting or events then
  -- rare recorder.lua
  for i = 1, n, 2 do note('a', queued[i], '', queued[i + 1]) end
  keep_notes()
end
local answer = refused or 'a*'
-- include note.lua
-- include keep.lua
if not head or earliest < tonumber(head) then
  -- rare signal.lua
  signal('due', 'watcher', watcher, watcher_until, earliest)
end
return answer

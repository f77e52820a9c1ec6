--[[ plain: the common batch of an add: its jobs are small, concern only the queue, and have ids that are certainly free. It comes
before all that only other batches need, because making a function or a table costs as much as a command.

Needs    jobs, delayed, broadcasts, far, far_jobs, meta, wake; flags, longest, groups, FIRST_JOB, chosen, renews, AT; version, clock,
         calls
Returns  the answer of the step. The script goes on behind this part if the batch is another one
Holds    rules 1, 2, 4, 18, 23: reads `delayed` before it writes, and begins with `jobs`, so a wrong type comes before the first write
Cost     ZRANGE, HSET, ZADD, SET; for chosen ids HEXISTS or HMGET, and EXISTS; if no job waits HLEN; PUBLISH for an earlier head
]]
-- No record up to this has its metadata in the key `metadata`.
local SMALL, MOST_READ = 4096, 1048576
local may_be_far = flags ~= '' and string.find(flags, 'f', 1, true)
local is_plain = groups > 0 and longest <= SMALL and (flags == '' or not string.find(flags, 's', 1, true))
if is_plain and chosen then
  if #chosen == 1 then
    is_plain = redis.call('HEXISTS', jobs, chosen[1]) == 0
  else
    is_plain = largest and largest * #chosen <= MOST_READ
    local records = is_plain and redis.call('HMGET', jobs, unpack(chosen)) or {}
    for i = 1, #records do is_plain = is_plain and not records[i] end
  end
  if is_plain and redis.call('EXISTS', broadcasts, far_jobs) > 0 then
    is_plain = redis.call('EXISTS', broadcasts) == 0
    for i = 1, #chosen do is_plain = is_plain and redis.call('HEXISTS', far_jobs, chosen[i]) == 0 end
  end
end
if is_plain and may_be_far then
  -- include plain_far.lua
end
if is_plain then
  local head = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
  local was_empty = not head and not far_at and redis.call('HLEN', jobs) == 0
  local members, n, earliest = {}, 0, math.huge
  for i = 6, 4 + 2 * groups, 2 do
    local time = string.sub(ARGV[i], 4)
    local due = string.byte(ARGV[i], 3) ~= AT and after(time) or math.max(tonumber(time), ceil)
    if due < earliest then earliest = due end
    local due_text = int(due)
    for _ = 1, ARGV[i + 1] do
      members[n + 1], members[n + 2], n = due_text, ARGV[FIRST_JOB + n], n + 2
    end
  end
  -- A batch has at most 1,000 jobs, which Lua can still unpack.
  redis.call('HSET', jobs, unpack(ARGV, FIRST_JOB))
  redis.call('ZADD', delayed, unpack(members))
  if history or events and (tonumber(events) or 0) > floor then
    -- include moves.lua
    for i = 1, n, 2 do note_move('a', members[i], '', members[i + 1]) end
    tell_moves()
  end
  local answer = 'a*'
  -- include note.lua
  -- include keep.lua
  if not head or earliest < tonumber(head) then
    -- include signal.lua
    signal('due', 'watcher', watcher, watcher_until, earliest)
  end
  return was_empty and {'first', answer} or answer
end

--[[ sweep: removes old DEAD and DONE jobs, forgets old histories and claims aged UNACKED jobs. Takes a sequence number and renews.

KEYS[1]  {app:topic}:jobs           HASH    job id -> record
KEYS[2]  {app:topic}:delayed        ZSET    job id -> due time, ms
KEYS[3]  {app:topic}:unacked        ZSET    job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead           ZSET    job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done           ZSET    job id -> end of its retention, ms
KEYS[6]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[7]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[8]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[9]  {app:topic}:crashes        HASH    job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[10] {app:topic}:meta           HASH    protocol, fence, largest, watcher, standby, paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst, opens, events, history
KEYS[11] {app:topic}:metadata       HASH    job id -> metadata that override those of its record
KEYS[12] {app:topic}:grouped        ZSET    waiting jobs and seats of groups, all with score 0
KEYS[13] {app:topic}:broadcasts     ZSET    broadcast id -> due time, ms
KEYS[14] {app:topic}:history        HASH    job id -> history
KEYS[15] {app:topic}:history-ends   ZSET    id of a job that is gone -> when its history is forgotten, ms
KEYS[16] {app:topic}:members        HASH    job id -> job set that the job is a member of
KEYS[17] {app:topic}:outbox         ZSET    follow-ups that have not arrived, all with score 0
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  limit, 1..=1000, for each of dead, done and unacked
ARGV[4]  lease, ms
ARGV[5]  age: how long a job is UNACKED before it is claimed, ms
ARGV[6]  how long DEAD jobs are kept, ms
ARGV[7]  how many DEAD jobs are kept
ARGV[8]  the most bytes of records; one record may have more
ARGV[9]  how many DONE jobs are kept; empty: any number
ARGV[10] how many jobs of each group all nodes may claim within a period, JOBS/MS/BURST, as the code of the node says; empty: any number
ARGV[11] how many jobs may be RUNNING on all nodes, as that code says; 0: any number
ARGV[12] how many jobs all nodes may claim within a period, as that code says; empty: any number

Returns  {0, sequence number, rows} if last_seen is not the stored sequence number, otherwise {1, sequence number, rows,
         clock ms, ids, tokens (each and how many jobs have it, one after the other), records (ids and records packed with `cmsgpack` if they
         are more than 32), metadata that override theirs or nil, crash counts or nil, pruned DEAD, pruned DONE, more, dropped ids or nil, the state of the topic (the part `told`) or nil}
Holds    rules 1, 2, 5, 6, 8, 9, 25, 29, 31: an id that is also in delayed belongs there, and only leaves the place that was
         swept
Cost     O(limit log n)
]]
-- include types.lua
local node, last_seen, limit, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local MAX_PARKED, most_dead, most, most_done = 1000, tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local stored = redis.call('GET', KEYS.sequence)
if stored ~= last_seen then return {0, tonumber(stored or '') or 0, redis.call('HLEN', KEYS.running)} end
-- include version.lua
-- include clock.lua
-- include bulk.lua
local parked_until, dead_until = math.max(floor - ARGV[5], 0), math.max(floor - ARGV[6], 0)
local opens_at, drained_at, left = nil, nil, 0
-- include gate.lua
if opens_at or drained_at then parked_until = -1 end
local place, latest, are_elsewhere, choose, of_paused, seated, pruned_done, pruned_dead = KEYS.unacked, parked_until, nil, nil, 0, nil, nil, nil
local watcher_told, standby, standby_until, standby_told, opens, group_rate, group_burst =
  unpack(redis.call('HMGET', KEYS.meta, 'watcher-told', 'standby', 'standby-until', 'standby-told', 'opens', 'group_rate', 'group_burst'))
-- Lua has 200 local variables, and what follows needs none of these.
do
  -- include metadata.lua
  -- include overrides.lua
  -- include groups.lua
  -- include recorder.lua
  function are_elsewhere(ids) return read('ZMSCORE', KEYS.delayed, ids) end
  local function prune(place, ids)
    local is_delayed, removed = are_elsewhere(ids), {}
    for i, id in ipairs(ids) do
      if not is_delayed[i] then removed[#removed + 1] = id end
    end
    if has_groups then
      for i, text in ipairs(metadata_of(removed)) do seating.free_seat(removed[i], text) end
    end
    write('ZREM', place, ids)
    write('HDEL', KEYS.jobs, removed)
    write('HDEL', KEYS.metadata, removed)
    for _, id in ipairs(removed) do note('g', '', '', id) end
    return #ids
  end
  -- The first jobs of a place while they are too many, or their time is over.
  local function excess_of(place, most_kept, latest)
    local count, oldest, excess = redis.call('ZCARD', place), redis.call('ZRANGE', place, 0, limit - 1, 'WITHSCORES'), {}
    for i = 1, #oldest / 2 do
      if count - #excess > most_kept or tonumber(oldest[2 * i]) <= latest then excess[#excess + 1] = oldest[2 * i - 1] end
    end
    return excess
  end
  redis.call('HDEL', KEYS.crashes, '')
  pruned_done = prune(KEYS.done, most_done and excess_of(KEYS.done, most_done, floor)
    or redis.call('ZRANGE', KEYS.done, '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit))
  pruned_dead = prune(KEYS.dead, excess_of(KEYS.dead, most_dead, dead_until))
  if has_groups then
    local before, now = seating.head(), seating.regroup()
    if now and now < (before or math.huge) then redis.pcall('PUBLISH', string.sub(KEYS.meta, 1, -5) .. 'wake', 'due') end
    -- rare parked.lua
  end
end
-- Histories of jobs that are gone, once their time is over (rule 31).
local more_histories = false
if history_setting then
  local over = redis.pcall('ZRANGE', KEYS.history_ends, '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit)
  if #over > 0 then
    redis.pcall('HDEL', KEYS.history, unpack(over))
    redis.pcall('ZREM', KEYS.history_ends, unpack(over))
    more_histories = #over == limit
  end
end
local limited, in_runs, pace = concurrency or rate or ARGV[11] ~= '0' or ARGV[12] ~= '', nil, nil
if limited then
  -- rare limits.lua
end
-- include claim.lua
if next_at and (claimed > 0 or next_at > micros) then changes[#changes + 1], changes[#changes + 2] = 'opens', int(next_at) end
if changes[1] then call('HSET', KEYS.meta, unpack(changes)) end
local function has_until(place, time)
  local head = redis.call('ZRANGE', place, 0, 0, 'WITHSCORES')[2]
  return head and tonumber(head) <= time
end
local more = more_histories or has_until(KEYS.done, floor) or has_until(KEYS.dead, dead_until) or redis.call('ZCARD', KEYS.dead) > most_dead
  or of_paused < MAX_PARKED and redis.call('ZCOUNT', KEYS.unacked, '-inf', int(parked_until)) > of_paused or most_done ~= nil and redis.call('ZCARD', KEYS.done) > most_done
keep_notes()
-- include told.lua
return {
  1, tonumber(sequence_number), rows, floor, ids, tokens, records, overrides, crash_counts, pruned_dead, pruned_done, more and 1 or 0,
  dropped, told,
}

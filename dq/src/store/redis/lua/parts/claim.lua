--[[ claim: claims the due jobs of a place for one node, under one fence. Takes a sequence number and renews.

It is the path of every job, so it makes no function and no table that it can do without, and calls each command once.

Needs    place, latest, limit, most: claims the jobs of `place` with a time up to `latest`, at most `limit` of them, as many as
         have at most `most` bytes, and at least one. are_elsewhere(ids), or nil: an id for which it returns a value only
         leaves the place. choose(), or nil: gives ids, scores, members and is_short as the part `ranked` does. priorities: field of meta, and ageing where it is set and the place is DELAYED. pace, of the part `limits`, or nil. note, or nil. jobs, metadata, running, leases, sequence, crashes; node, last_seen, lease; protocol,
         last_fence, largest, and what the part `tell_lease` needs: fields of meta; PROTOCOL and MAX_LEASE, which the loader
         writes; clock
Gives    ids; tokens: each token and how many of the jobs have it; records; ids and records are packed if they are more than 32,
         which the node reads five times as fast; overrides: metadata that override theirs, or false;
         crash_counts or false; dropped: ids whose record was missing, or false; sequence_number; rows; changes: fields of
         meta and their values, which the script writes; next_at, starts_at: what pace.next gives, where there is a rate; front: the first two entries of the place with their times, as they
         were; is_short: nothing else of the place was due; pauses: what the part `ranked` gives
Holds    rules 1, 5, 6, 8, 9: the first write is a removal; sequence number, rows and lease are written together
Cost     O(limit log n). Per job one ZSET removal, one HMGET field and one HSET field; two more commands for many jobs,
         which halve the time of writing rows. For each due time that is followed by another one ZCOUNT and one ZSCORE, or,
         if few jobs share a due time, one ZRANGE for all. Where the largest record that was ever added, times the limit,
         is over `most`, one HSTRLEN per job
]]
local call, format = redis.call, string.format
local front, ids, is_short, scores, members, their_turns, pauses = {}, {}, true, nil, nil, nil, nil
if choose then
  ids, scores, members, is_short = choose()
elseif priorities and place == KEYS.delayed then
  -- rare ranked.lua
else
  front = call('ZRANGE', place, '0', '1', 'WITHSCORES')
end
if front[4] and tonumber(front[4]) <= latest then
  ids, is_short = call('ZRANGE', place, '-inf', format('%d', latest), 'BYSCORE', 'LIMIT', '0', limit), false
elseif front[2] and tonumber(front[2]) <= latest then
  ids[1] = front[1]
end
local n, rows, rare, overridden = #ids, call('HLEN', KEYS.running), call('EXISTS', KEYS.crashes, KEYS.metadata), 0
if rare > 0 then overridden = call('HLEN', KEYS.metadata) end
-- Metadata have at most 16 KiB of texts, and a state of 64 KiB.
if n > 1 and n * (tonumber(largest or '') or math.huge) + math.min(n, overridden) * 81920 > most then
  -- rare fit.lua
end
local records, tokens, overrides, crash_counts, dropped = {}, {}, false, false, false
if n > 0 then records = call('HMGET', KEYS.jobs, unpack(ids)) end
if pace and n > 0 then
  -- rare weigh.lua
end
if has_groups and place == KEYS.delayed and n > 0 then
  -- rare seats.lua
end
local claimed, is_whole = n, n == 0 or not are_elsewhere
for i = 1, n do is_whole = is_whole and records[i] end
if not is_whole then
  -- rare leave_out.lua
end
if claimed > 0 and rare > 0 then
  if overridden > 0 then overrides = call('HMGET', KEYS.metadata, unpack(ids)) end
  if rare > 1 or overridden == 0 then
    crash_counts = call('HMGET', KEYS.crashes, unpack(ids))
    for i = 1, claimed do crash_counts[i] = tonumber(crash_counts[i] and string.match(crash_counts[i], '^%d+') or 0) end
  end
end
-- Redis keeps a small hash as a list and searches it from the start for each field. A value of more than 64 bytes makes
-- it a table, so many rows are written behind a long one, which is then removed.
local new_rows, last, is_long = {}, 0, claimed > 16 and rows <= 512
if is_long then new_rows, last = {'', '-----------------------------------------------------------------'}, 2 end
local fence, known = micros, last_fence and tonumber(last_fence)
-- Up to the limit, 2^52; what follows that, or is no number, is not a fence of dq (rule 9).
if known and known >= fence and known < 4503599627370496 then fence = known + 1 end
-- A score as text costs as much as the rest of a job. If the first and the last job are due together, all are.
local at, runs, due, latest_due = 1, 0, front[2], front[2]
if claimed > 1 and not scores then latest_due = call('ZSCORE', place, ids[claimed]) end
while at <= claimed do
  local to = claimed
  if scores then
    to, due = at, scores[2 * at]
    while to < claimed and scores[2 * to + 2] == due do to = to + 1 end
  elseif due ~= latest_due then
    to = math.min(at + call('ZCOUNT', place, due, due) - 1, claimed)
  end
  local due_text = #due == 13 and due or int(due)
  local token = format('%d:', fence) .. due_text
  for i = at, to do
    new_rows[last + 1], new_rows[last + 2] = ids[i], token
    last = last + 2
  end
  if note then note('c', due_text, node, ids, at, to) end
  runs = runs + 1
  tokens[2 * runs - 1], tokens[2 * runs] = token, to - at + 1
  at = to + 1
  if at <= claimed and not scores then
    if at > 8 * runs then
      due = call('ZSCORE', place, ids[at])
    else
      scores = call('ZRANGE', place, '0', format('%d', n - 1), 'WITHSCORES')
    end
  end
end
if n == 0 then
  call('HDEL', KEYS.crashes, '')
elseif members then
  call('ZREM', place, unpack(members, 1, n))
else
  call('ZREMRANGEBYRANK', place, '0', format('%d', n - 1))
end
local changes = {}
if claimed > 0 then
  rows = rows + call('HSET', KEYS.running, unpack(new_rows))
  if is_long then rows = rows - call('HDEL', KEYS.running, '') end
  changes = {'fence', format('%d', fence)}
  if not protocol then changes[3], changes[4] = 'protocol', PROTOCOL end
end
local sequence_number = format('%d', last_seen + 1)
call('SET', KEYS.sequence, sequence_number, 'EX', '86400')
-- The longest lease is five minutes (rule 20).
if rows > 0 then call('ZADD', KEYS.leases, format('%d', floor + math.min(lease, MAX_LEASE)), node) end
if claimed > 0 and rows == claimed then
  -- rare tell_lease.lua
end
local next_at, starts_at
if pace then
  local spent = 0
  for i = 1, claimed do spent = spent + pace.weights[ids[i]] end
  next_at, starts_at = pace.next(spent, pace.refused)
end
if claimed > 32 then ids, records = cmsgpack.pack(ids), cmsgpack.pack(records) end

--[[ claim: claims the due jobs of a place for one node, under one fence. Takes a sequence number and renews.

Needs    jobs, metadata, running, leases, sequence, meta, crashes; node, last_seen, lease; version, clock, bulk
Gives    claim(place, latest, limit, most, are_elsewhere): claims the jobs of `place` with a time up to `latest`, as many as
         have at most `most` bytes, and at least one. Returns ids, tokens (one if all jobs share it), records, metadata that
         override theirs or {}, crash counts or {}, ids that were dropped because their record was missing, sequence
         number, rows. `are_elsewhere(ids)` is optional; an id for which it returns a value only leaves the place
Holds    rules 3, 5, 6, 8, 9: the first write is a removal; sequence number, rows and lease are written together
Cost     O(limit log n). Per job one ZSET removal, one HMGET field and one HSET field; two more commands for many jobs,
         which halve the time of writing rows; and one ZRANGE more where the jobs do not share one due time. Where the
         largest record that was ever added, times the limit, is over `most`, one HSTRLEN per job
]]
local LONGEST_LEASE = 300000
-- Redis keeps a small hash as a list and searches it from the start for each field. A value of more than 64 bytes makes
-- it a table, so many rows are written behind a long one, which is then removed.
local FEW, LONG = 16, string.rep('-', 65)
-- Metadata have at most 12 KiB of headers and errors, and a retry policy.
local MOST_METADATA = 16384
local function claim(place, latest, limit, most, are_elsewhere)
  local ids = redis.call('ZRANGE', place, '-inf', latest, 'BYSCORE', 'LIMIT', 0, limit)
  local rare = redis.call('EXISTS', crashes, metadata)
  local has_metadata = rare > 0 and redis.call('EXISTS', metadata) == 1
  local has_crashes = rare > (has_metadata and 1 or 0)
  local most_each = largest and largest + (has_metadata and MOST_METADATA or 0) or math.huge
  if #ids > 1 and #ids * most_each > most then
    for i = fitting(has_metadata and {jobs, metadata} or {jobs}, ids, most) + 1, #ids do ids[i] = nil end
  end
  local n, tokens, rows, dropped, dues = #ids, {}, {}, {}, nil
  -- A score as text costs as much as the rest of a job. If the first and the last job are due together, all are.
  local first_and_last = n > 0 and redis.call('ZMSCORE', place, ids[1], ids[n]) or {}
  if first_and_last[1] ~= first_and_last[2] then
    dues = redis.call('ZRANGE', place, '-inf', latest, 'BYSCORE', 'LIMIT', 0, n, 'WITHSCORES')
  end
  local records = read('HMGET', jobs, ids)
  local elsewhere = are_elsewhere and are_elsewhere(ids) or {}
  local claimed = 0
  for i = 1, n do
    if not records[i] then
      dropped[#dropped + 1] = ids[i]
    elseif not elsewhere[i] then
      claimed = claimed + 1
      if claimed < i then
        ids[claimed], records[claimed] = ids[i], records[i]
        if dues then dues[2 * claimed] = dues[2 * i] end
      end
    end
  end
  for i = claimed + 1, n do ids[i], records[i] = nil, nil end
  local fence = micros
  if last_fence and tonumber(last_fence) >= fence then fence = last_fence + 1 end
  local prefix = int(fence) .. ':'
  local function token_of(due) return prefix .. (#due == 13 and due or int(due)) end
  local shared_token = not dues and n > 0 and token_of(first_and_last[1])
  local offset = claimed > FEW and 2 or 0
  if offset > 0 then rows[1], rows[2] = '', LONG end
  for i = 1, claimed do
    local token = shared_token or token_of(dues[2 * i])
    tokens[shared_token and 1 or i], rows[offset + 2 * i - 1], rows[offset + 2 * i] = token, ids[i], token
  end
  local overrides, crash_counts = has_metadata and read('HMGET', metadata, ids) or {}, {}
  if claimed > 0 and has_crashes then
    local texts = redis.call('HMGET', crashes, unpack(ids))
    for i = 1, claimed do crash_counts[i] = texts[i] and tonumber(string.match(texts[i], '^%d+') or 0) or 0 end
  end
  if n > 0 then redis.call('ZREMRANGEBYRANK', place, 0, n - 1) else redis.call('HDEL', crashes, '') end
  if claimed > 0 then
    write('HSET', running, rows)
    if offset > 0 then redis.call('HDEL', running, '') end
    redis.call('HSET', meta, 'fence', int(fence), 'protocol', PROTOCOL)
  end
  local sequence_number = last_seen + 1
  redis.call('SET', sequence, int(sequence_number), 'EX', 86400)
  local held = redis.call('HLEN', running)
  if held > 0 then redis.call('ZADD', leases, floor + math.min(lease, LONGEST_LEASE), node) end
  return ids, tokens, records, overrides, crash_counts, dropped, sequence_number, held
end

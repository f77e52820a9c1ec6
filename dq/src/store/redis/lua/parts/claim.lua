--[[ claim: gives a node what is in a place at a time or before, under one fence; takes a sequence; renews.

Needs    jobs, running, leases, sequence_key, meta, crashes; node, last_seen, lease; clock, bulk, known (the fence at 2)
Gives    claim(place, ends, limit, is_elsewhere): ids, tokens (one where it is that of all), records, crash counts, ids
         dropped because nothing is kept of them, sequence, rows. `is_elsewhere(ids)`, where there is one, tells for each id
         whether it is no member of this place
Holds    rules 3, 6, 8, 9: begins with a removal; sequence, rows and lease are written together
Cost     O(limit log n): per job one member removed, one field read, one field written; two commands more for many,
         which save half of the time of rows, and their scores read again where they are not all the same
]]
local LONGEST_LEASE = 300000
-- Redis keeps a small hash as a list and searches it from its beginning for each field. A value of more than 64 bytes makes
-- it a table.
local FEW, LONG = 16, string.rep('-', 65)
local function claim(place, ends, limit, is_elsewhere)
  local ids = redis.call('ZRANGE', place, '-inf', ends, 'BYSCORE', 'LIMIT', 0, limit)
  local n, tokens, rows, dropped, due = #ids, {}, {}, {}, nil
  -- A score as text costs as much as all the rest of a job: where the first and the last are due together, so are all.
  local together = n > 0 and redis.call('ZMSCORE', place, ids[1], ids[n]) or {}
  if together[1] ~= together[2] then
    due = redis.call('ZRANGE', place, '-inf', ends, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  end
  local records = read('HMGET', jobs, ids)
  local elsewhere = is_elsewhere and is_elsewhere(ids) or {}
  local kept = 0
  for i = 1, n do
    if not records[i] then
      dropped[#dropped + 1] = ids[i]
    elseif not elsewhere[i] then
      kept = kept + 1
      if kept < i then
        ids[kept], records[kept] = ids[i], records[i]
        if due then due[2 * kept] = due[2 * i] end
      end
    end
  end
  for i = kept + 1, n do ids[i], records[i] = nil, nil end
  local fence = micros
  if known[2] and tonumber(known[2]) >= fence then fence = known[2] + 1 end
  local prefix = int(fence) .. ':'
  local function token(at) return prefix .. (#at == 13 and at or int(at)) end
  local one = not due and n > 0 and token(together[1])
  local before = kept > FEW and 2 or 0
  if before > 0 then rows[1], rows[2] = '', LONG end
  for i = 1, kept do
    local at = one or token(due[2 * i])
    tokens[one and 1 or i], rows[before + 2 * i - 1], rows[before + 2 * i] = at, ids[i], at
  end
  local lost = {}
  if kept > 0 and redis.call('EXISTS', crashes) == 1 then
    lost = redis.call('HMGET', crashes, unpack(ids))
    for i = 1, kept do lost[i] = lost[i] and tonumber(string.match(lost[i], '^%d+') or 0) or 0 end
  end
  if n > 0 then redis.call('ZREMRANGEBYRANK', place, 0, n - 1) else redis.call('HDEL', crashes, '') end
  if kept > 0 then
    write('HSET', running, rows)
    if before > 0 then redis.call('HDEL', running, '') end
    redis.call('HSET', meta, 'fence', int(fence), 'protocol', PROTOCOL)
  end
  local sequence = last_seen + 1
  redis.call('SET', sequence_key, int(sequence), 'EX', 86400)
  local held = redis.call('HLEN', running)
  if held > 0 then redis.call('ZADD', leases, floor + math.min(lease, LONGEST_LEASE), node) end
  return ids, tokens, records, lost, dropped, sequence, held
end

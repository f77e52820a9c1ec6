--[[ leave_out: claims neither jobs whose record is missing nor those that belong elsewhere. Both leave the place.

Needs    n, ids, records; scores, or nil; are_elsewhere, or nil; note, or nil; place; call
Gives    claimed: how many stay in ids and records; scores: their times, each behind an id; dropped: ids whose record was missing
Cost     one ZRANGE, and that of are_elsewhere
]]
local elsewhere = are_elsewhere and are_elsewhere(ids) or {}
claimed, dropped = 0, {}
scores = scores or call('ZRANGE', place, '0', format('%d', n - 1), 'WITHSCORES')
for i = 1, n do
  if not records[i] then
    dropped[#dropped + 1] = ids[i]
    if note then note('z', '', '', ids[i]) end
  elseif not elsewhere[i] then
    claimed = claimed + 1
    ids[claimed], records[claimed], scores[2 * claimed] = ids[i], records[i], scores[2 * i]
  end
end
for i = claimed + 1, n do ids[i], records[i], scores[2 * i] = nil, nil, nil end

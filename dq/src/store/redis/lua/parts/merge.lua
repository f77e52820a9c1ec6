--[[ merge: a page of DELAYED while jobs wait that are due much later: merges `delayed` with their tree.

Needs    jobs, place, metadata, far, far_jobs, far_leaves; limit, cursor_time, cursor_id, most; first: the rank in `place` at which the page begins;
         found: its entries; ids, times; answer_of, as `page` has it; bulk, order
Returns  the page
Cost     O(limit log limit). Three commands for each leaf that may have jobs of the page
]]
-- include far.lua
local function comes_before(a, b) return a.due < b.due or a.due == b.due and is_before(a.id, b.id) end
local entries, later, cursor = {}, 0, {due = tonumber(cursor_time) or -1, id = cursor_id}
for i = 1, #found, 2 do entries[#entries + 1] = {id = found[i], due = tonumber(found[i + 1])} end
local bound = cursor.due >= 0 and leaf_of(cursor.due, cursor.id) or redis.call('ZRANGE', KEYS.far, 0, 0)[1]
-- A full page of near jobs that are due before every far one needs no merging.
local is_apart = bound and #entries == limit and entries[limit].due < base_of(bound)
while not is_apart and bound and later <= limit do
  local leaf = ids_in(leaf_at(bound))
  for i, value in ipairs(read('HMGET', KEYS.far_jobs, leaf)) do
    local entry = value and {id = leaf[i], due = due_in(value), record = record_in(value)}
    if entry and comes_before(cursor, entry) then
      entries[#entries + 1] = entry
      later = later + 1
    end
  end
  bound = redis.call('ZRANGE', KEYS.far, '(' .. bound, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
end
if not is_apart then table.sort(entries, comes_before) end
local records, overrides, bytes = {}, {}, 0
for i = 1, math.min(#entries, limit) do
  local entry = entries[i]
  if entry.record then
    bytes = bytes + #entry.record
  else
    bytes = bytes + redis.call('HSTRLEN', KEYS.jobs, entry.id) + redis.call('HSTRLEN', KEYS.metadata, entry.id)
  end
  if bytes > most and i > 1 then break end
  ids[i], times[i] = entry.id, entry.due
  records[i] = entry.record or redis.call('HGET', KEYS.jobs, entry.id)
  overrides[i] = not entry.record and redis.call('HGET', KEYS.metadata, entry.id)
end
local has_more = #entries > #ids or bound or redis.call('ZCARD', place) > first + #found / 2
do return answer_of(records, overrides, has_more and 1 or 0) end

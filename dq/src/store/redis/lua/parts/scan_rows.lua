--[[ scan_rows: reads a page of rows without going through all of them. A row that stays is in at least one page, and may be in
two; the order is the server's own.

The cursor is '' (the beginning) or `AT:ID`: AT is a cursor of HSCAN, and ID, if it is there, is the last id that was read
of what HSCAN answers there with COUNT 1. That is one bucket of the hash, or the whole hash if it is small. So a page that
has no room for all of it, too, continues where it ended.

Needs    order
Gives    scan_rows(running, limit, cursor, fitting_of): ids, tokens, and the cursor of the next page ('' after the last).
         fitting_of(ids) is optional: how many of these ids the page may have, at least one. A page may have fewer rows than
         there is room for, and even none
Cost     O(page), plus O(buckets) where the hash has become sparse
]]
local function scan_rows(running, limit, cursor, fitting_of)
  local at, last = string.match(cursor, '^(%d+):(.*)$')
  if not at then at, last = '0', '' end
  local count = last == '' and limit or 1
  while true do
    local answer = redis.call('HSCAN', running, at, 'COUNT', count)
    local following, all, ids, token_of = answer[1], answer[2], {}, {}
    for i = 1, #all, 2 do
      if last == '' or is_before(last, all[i]) then
        ids[#ids + 1] = all[i]
        token_of[all[i]] = all[i + 1]
      end
    end
    local cut = count == 1 or #all == 2 * redis.call('HLEN', running)
    local n = math.min(#ids, limit)
    if fitting_of and n > 0 then n = math.min(n, fitting_of(ids)) end
    -- The order decides nothing but where a page ends; to sort costs more than all else.
    if cut and n < #ids then
      table.sort(ids, is_before)
      n = math.min(#ids, limit)
      if fitting_of then n = math.min(n, fitting_of(ids)) end
    end
    if n == #ids or cut then
      local following_cursor = n < #ids and at .. ':' .. ids[n] or following ~= '0' and following .. ':' or ''
      for i = n + 1, #ids do ids[i] = nil end
      local tokens = {}
      for i = 1, n do tokens[i] = token_of[ids[i]] end
      return ids, tokens, following_cursor
    end
    count = math.max(1, math.floor(count / 4))
  end
end

--[[ rows: reads a page of the jobs that some nodes hold, node after node. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:metadata      HASH  job id -> metadata that override those of its record
KEYS[3]  {app:topic}:crashes       HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[4]  {app:topic}:pending       HASH  job id -> pending command
KEYS[5]  {app:topic}:replacements  HASH  job id -> record of the replacement that waits for the end of its run
KEYS[6]  {app:topic}:meta          HASH  fence
KEYS[7]  {app:topic}:running:NODE  HASH  job id -> token; and on: of each of the nodes
ARGV[1]  limit, 1..=1000
ARGV[2]  cursor in the rows of the first node, '' for the beginning
ARGV[3]  the most bytes of records; one may have more
ARGV[4]  the number of nodes
ARGV[5]  e for an export, which has all that the topic keeps of each job; otherwise ''

Returns  {the number of the node at which the next page begins or 0, the cursor in its rows, the clock ms, the last fence or false, jobs}, each
         job as {the number of its node, id, token, record or false, metadata that override its own or false, crashes or false, pending command or
         false, record of its replacement or false}. Only an export has the fence and the last three
Holds    rules 5, 27
Cost     O(page)
]]
local limit, cursor, most, nodes, is_export = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == 'e'
-- include clock.lua
-- include bulk.lua
-- include order.lua
-- include scan_rows.lua
local sized = is_export and {KEYS.jobs, KEYS.metadata, KEYS.replacements} or {KEYS.jobs, KEYS.metadata}
local ids, tokens, values, holders, bytes = {}, {}, {{}, {}, {}}, {}, 0
local function fitting_of(found) return fitting(sized, found, most) end
local function page_before(n, following)
  local crash_texts, commands, rows = is_export and read('HMGET', KEYS.crashes, ids) or {}, is_export and read('HMGET', KEYS.pending, ids) or {}, {}
  for i, id in ipairs(ids) do
    rows[i] = {holders[i], id, tokens[i], values[1][i], values[2][i], crash_texts[i] or false, commands[i] or false, values[3][i] or false}
  end
  return {n, following, floor, is_export and redis.call('HGET', KEYS.meta, 'fence'), rows}
end
for n = 1, nodes do
  if #ids == limit then return page_before(n, '') end
  local found, their_tokens, following = scan_rows(KEYS[FIRST + n - 1], limit - #ids, n == 1 and cursor or '', fitting_of)
  local theirs, size = {}, 0
  for k, key in ipairs(sized) do
    theirs[k] = read('HMGET', key, found)
    for i = 1, #found do size = size + #(theirs[k][i] or '') end
  end
  if #ids > 0 and bytes + size > most then return page_before(n, '') end
  for i = 1, #found do
    local at = #ids + 1
    ids[at], tokens[at], holders[at] = found[i], their_tokens[i], n
    for k = 1, #sized do values[k][at] = theirs[k][i] end
  end
  bytes = bytes + size
  if following ~= '' then return page_before(n, following) end
end
return page_before(0, '')

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

Returns  {ids, tokens, records, metadata that override theirs or false, how many of these rows each node has, the number of the node at
         which the next page begins or 0, the cursor in its rows, the clock ms}; and of an export the last fence or false, crashes
         or false, pending commands or false, records of replacements or false
Holds    rules 5, 27
Cost     O(page)
]]
local limit, cursor, most, nodes, is_export = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == 'e'
-- include clock.lua
-- include bulk.lua
-- include order.lua
-- The rows of the node that is being read.
local running
-- include scan_rows.lua
local sized = is_export and {jobs, metadata, replacements} or {jobs, metadata}
local ids, tokens, values, rows, bytes = {}, {}, {{}, {}, {}}, {}, 0
local function fitting_of(found) return fitting(sized, found, most) end
local function page_before(n, following)
  local answer = {ids, tokens, values[1], values[2], rows, n, following, floor}
  if is_export then
    answer[9], answer[10] = redis.call('HGET', meta, 'fence'), read('HMGET', crashes, ids)
    answer[11], answer[12] = read('HMGET', pending, ids), values[3]
  end
  return answer
end
for n = 1, nodes do
  if #ids == limit then return page_before(n, '') end
  running = KEYS[FIRST + n - 1]
  local found, their_tokens, following = scan_rows(limit - #ids, n == 1 and cursor or '', fitting_of)
  local theirs, size = {}, 0
  for k, key in ipairs(sized) do
    theirs[k] = read('HMGET', key, found)
    for i = 1, #found do size = size + #(theirs[k][i] or '') end
  end
  if #ids > 0 and bytes + size > most then return page_before(n, '') end
  for i = 1, #found do
    local at = #ids + 1
    ids[at], tokens[at] = found[i], their_tokens[i]
    for k = 1, #sized do values[k][at] = theirs[k][i] end
  end
  rows[n], bytes = #found, bytes + size
  if following ~= '' then return page_before(n, following) end
end
return page_before(0, '')

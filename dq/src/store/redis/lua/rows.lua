--[[ rows: reads a page of the jobs that some nodes hold, node after node. Reads only.

KEYS[1]  {app:topic}:jobs          HASH  job id -> record
KEYS[2]  {app:topic}:metadata      HASH  job id -> metadata that override those of its record
KEYS[3]  {app:topic}:running:NODE  HASH  job id -> token; and on: of each of the nodes
ARGV[1]  limit, 1..=1000
ARGV[2]  cursor in the rows of the first node, '' for the beginning
ARGV[3]  the most bytes of records; one may have more
ARGV[4]  the number of nodes

Returns  {ids, tokens, records, metadata that override theirs or false, how many of these rows each node has, the number of the node at
         which the next page begins or 0, the cursor in its rows}
Holds    rule 5
Cost     O(page)
]]
-- include types.lua
local limit, cursor, most, nodes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
-- include bulk.lua
-- include order.lua
-- The rows of the node that is being read.
local running
-- include scan_rows.lua
local ids, tokens, records, overrides, rows, bytes = {}, {}, {}, {}, {}, 0
local function fitting_of(found) return fitting({jobs, metadata}, found, most) end
local function page_before(n, following) return {ids, tokens, records, overrides, rows, n, following} end
for n = 1, nodes do
  if #ids == limit then return page_before(n, '') end
  running = KEYS[2 + n]
  local found, their_tokens, following = scan_rows(limit - #ids, n == 1 and cursor or '', fitting_of)
  local their_records, their_overrides, size = read('HMGET', jobs, found), read('HMGET', metadata, found), 0
  for i = 1, #found do size = size + #(their_records[i] or '') + #(their_overrides[i] or '') end
  if #ids > 0 and bytes + size > most then return page_before(n, '') end
  for i = 1, #found do
    local at = #ids + 1
    ids[at], tokens[at], records[at], overrides[at] = found[i], their_tokens[i], their_records[i], their_overrides[i]
  end
  rows[n], bytes = #found, bytes + size
  if following ~= '' then return page_before(n, following) end
end
return page_before(0, '')

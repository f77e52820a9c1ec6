--[[ nodes: names nodes that hold jobs, in the order of their names; or counts the rows of nodes. Reads only.

KEYS[1]  {app:topic}:leases        ZSET  node -> end of its lease, ms
KEYS[2]  {app:topic}:running:NODE  HASH  job id -> token; and on: of each node in ARGV, from the fourth on
ARGV[1]  how many nodes to name at most, 0..=1000
ARGV[2]  the node behind which they begin; '' for the first ones
ARGV[3]  the id of a job, or ''
ARGV[4]  and on: the nodes whose rows are counted

Returns  {{{node, end of its lease ms}, ...}, {{rows of the first node in ARGV, 1 if it holds the job or 0}, ...}}
Holds    rule 8
Cost     if nodes are to be named: O(nodes with a lease), one ZRANGE. For each node in ARGV one HLEN and one HEXISTS
]]
local most, after, id = tonumber(ARGV[1]), ARGV[2], ARGV[3]
-- include order.lua
local named, end_of, answer, rows = {}, {}, {}, {}
local held = most > 0 and redis.call('ZRANGE', KEYS.leases, 0, -1, 'WITHSCORES') or {}
for i = 1, #held, 2 do
  local node = held[i]
  if is_before(after, node) and (#named < most or is_before(node, named[#named])) then
    local low, high = 1, #named + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if is_before(node, named[middle]) then high = middle else low = middle + 1 end
    end
    table.insert(named, low, node)
    end_of[node], named[most + 1] = held[i + 1], nil
  end
end
for i, node in ipairs(named) do answer[i] = {node, end_of[node]} end
for n = 4, #ARGV do rows[n - 3] = {redis.call('HLEN', KEYS[n - 2]), redis.call('HEXISTS', KEYS[n - 2], id)} end
return {answer, rows}

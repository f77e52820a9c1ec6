--[[ owned: says of keys of one topic that a scan of all names found what they are, and whether their node has a lease. Reads only.

KEYS[1]  {app:topic}:leases  ZSET  node -> end of its lease, ms
KEYS[2]  and on: the keys
ARGV     for each key the node that has it; '' if none does

Returns  for each key its type, as the server names it; its time to live, s, -1 if it does not expire; and 1 if its node has a lease
Holds    rule 8
Cost     up to three commands for each key
]]
local facts = {}
for i, node in ipairs(ARGV) do
  local key = KEYS[i + 1]
  facts[#facts + 1] = redis.call('TYPE', key).ok
  facts[#facts + 1] = redis.call('TTL', key)
  facts[#facts + 1] = node ~= '' and redis.pcall('ZSCORE', KEYS[1], node) and 1 or 0
end
return facts

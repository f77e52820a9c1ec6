--[[ owned: says of keys that a scan of all names found what they are, and whether their topic knows of them. Reads only.

KEYS     for each key its name, and the key that should know of it: the leases of its topic, or the directory; or itself
ARGV     for each key the node or the topic that should be known

Returns  for each key its type, as the server names it; its time to live, s, -1 if it does not expire; and 1 if it is known
Holds    rule 8. It has keys of several topics, so a cluster refuses it
Cost     three commands for each key
]]
local facts = {}
for i, owner in ipairs(ARGV) do
  local key = KEYS[2 * i - 1]
  facts[#facts + 1] = redis.call('TYPE', key).ok
  facts[#facts + 1] = redis.call('TTL', key)
  facts[#facts + 1] = redis.pcall('ZSCORE', KEYS[2 * i], owner) and 1 or 0
end
return facts

--[[ holders: finds nodes whose rows a script does not read. A job with a record in none of the ZSETs is RUNNING if a node has a row of
it; otherwise another program has removed its place.

Needs    leases; NODES: the nodes whose rows are in KEYS
Gives    unnamed_holders(): all nodes with a lease if one of them is not in NODES, otherwise nil
Holds    rules 1, 2, 8: what is no text is no node of dq. A node that has rows has a lease. All rows and places are read in one step
Cost     one ZRANGE
]]
local function unnamed_holders()
  local is_named = {}
  for _, name in ipairs(NODES) do is_named[name] = true end
  local holders = redis.call('ZRANGE', KEYS.leases, 0, -1)
  for _, holder in ipairs(holders) do
    local is_text = string.gsub(string.gsub(holder, '[\194-\223][\128-\191]', ''), '[\224-\239][\128-\191][\128-\191]', '')
    if not is_named[holder] and not string.find(is_text, '[\128-\255]') then return holders end
  end
end

--[[ holders: finds jobs without a place. A job with a record in none of the ZSETs is RUNNING if a node has a row of it;
otherwise another program has removed its place.

Needs    leases; places; NODES: the nodes whose rows are in KEYS; FIRST, which the loader writes: the number of the first of these
         keys
Gives    unnamed_holders(): all nodes with a lease if one of them is not in NODES, otherwise nil. lost_among(ids): those
         without a place and without a row
Holds    rules 2, 8: a node that has rows has a lease. All rows and places are read in one step
Cost     one ZRANGE; four ZMSCORE, and one HMGET per node
]]
local function unnamed_holders()
  local is_named = {}
  for _, name in ipairs(NODES) do is_named[name] = true end
  local holders = redis.call('ZRANGE', leases, 0, -1)
  for _, holder in ipairs(holders) do
    if not is_named[holder] then return holders end
  end
end
local function without_row(ids)
  for n = 1, #NODES do
    local tokens, left = read('HMGET', KEYS[FIRST + n - 1], ids), {}
    for i, id in ipairs(ids) do
      if not tokens[i] then left[#left + 1] = id end
    end
    ids = left
  end
  return ids
end
local function lost_among(ids)
  local unplaced, places = {}, places_of(ids)
  for i, id in ipairs(ids) do
    if places[i] == 'r' then unplaced[#unplaced + 1] = id end
  end
  return without_row(unplaced)
end

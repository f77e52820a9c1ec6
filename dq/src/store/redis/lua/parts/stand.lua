--[[ stand: turn and rows of the node, as every answer to a link tells them; renews or takes the lease.

Needs    running, leases, turns, node, heard, lease, floor
Gives    stand(): turn, rows
Holds    rule 8: the lease goes with the last row; only a request that names the turn renews, none creates a lease
Cost     HLEN, GET, and ZADD or ZREM
]]
local LONGEST_LEASE = 300000
local function stand()
  local turn, rows = redis.call('GET', turns), redis.call('HLEN', running)
  if rows == 0 then
    redis.call('ZREM', leases, node)
  elseif turn == heard then
    redis.call('ZADD', leases, floor + math.min(lease, LONGEST_LEASE), node)
  end
  return tonumber(turn or 0), rows
end

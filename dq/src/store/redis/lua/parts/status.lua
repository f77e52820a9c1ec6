--[[ status: sequence and rows of the node, as every answer to a link tells them; renews or takes the lease.

Needs    running, leases, sequence_key, node, last_seen, lease, floor
Gives    lease_status(): sequence, rows
Holds    rule 8: the lease goes with the last row; only a request that names the sequence renews, none creates a lease
Cost     HLEN, GET, and ZADD or ZREM
]]
local LONGEST_LEASE = 300000
local function lease_status()
  local sequence, rows = redis.call('GET', sequence_key), redis.call('HLEN', running)
  if rows == 0 then
    redis.call('ZREM', leases, node)
  elseif sequence == last_seen then
    redis.call('ZADD', leases, floor + math.min(lease, LONGEST_LEASE), node)
  end
  return tonumber(sequence or 0), rows
end

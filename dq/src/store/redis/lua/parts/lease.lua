--[[ lease: brings the node's lease up to date, and reads its lease status: sequence number and number of rows.

Needs    running, leases, sequence; node, last_seen, lease; MAX_LEASE, which the loader writes; clock
Gives    update_lease(): removes the lease of a node without rows, and renews it if last_seen is the stored sequence
         number. Returns the lease status
Holds    rules 6, 8
Cost     GET, HLEN, and ZADD or ZREM
]]
local function update_lease()
  local stored, rows = redis.call('GET', KEYS.sequence), redis.call('HLEN', KEYS.running)
  if rows == 0 then
    redis.call('ZREM', KEYS.leases, node)
  elseif stored == last_seen then
    redis.call('ZADD', KEYS.leases, floor + math.min(lease, MAX_LEASE), node)
  end
  return tonumber(stored or '') or 0, rows
end

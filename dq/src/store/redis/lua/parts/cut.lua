--[[ cut: cuts leases that are longer than the longest lease, as after a clock that jumped back (rule 20).

Needs    leases; MAX_LEASE, which the loader writes; clock
Cost     one ZRANGE, and one ZADD per lease that is cut, at most 100
]]
local latest_end = floor + MAX_LEASE
local too_long = redis.call('ZRANGE', KEYS.leases, '(' .. int(latest_end), '+inf', 'BYSCORE', 'LIMIT', 0, 100)
for _, holder in ipairs(too_long) do redis.call('ZADD', KEYS.leases, latest_end, holder) end

--[[ cut: a lease further ahead than the longest one, as after a clock that jumped back, is cut to that (rule 20).

Needs    leases, floor
Cost     one ZRANGE; at most 100 are cut a step
]]
local longest = floor + 300000
local ahead = redis.call('ZRANGE', leases, '(' .. string.format('%.0f', longest), '+inf', 'BYSCORE', 'LIMIT', 0, 100)
for _, holder in ipairs(ahead) do redis.call('ZADD', leases, longest, holder) end

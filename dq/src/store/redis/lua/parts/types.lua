--[[ types: a key of a wrong type is not dq's. Checked for every key before anything else, so that no step fails half-way.

Needs    TYPES, which the loader writes from `keys.rs`: the type of KEYS[i], or `channel` for one that is no key
Returns  the error `DQTYPE n`, n being the number of the key
Holds    rule 1: nothing was written yet
Cost     one TYPE a key
]]
for i, expected in ipairs(TYPES) do
  if KEYS[i] and expected ~= 'channel' then
    local found = redis.call('TYPE', KEYS[i]).ok
    if found ~= expected and found ~= 'none' then return redis.error_reply('DQTYPE ' .. i) end
  end
end

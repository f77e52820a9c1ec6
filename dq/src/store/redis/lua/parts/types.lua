--[[ types: checks the types of keys before anything is written. A key of a wrong type was not made by dq.

Needs    types and unread, which the loader writes from `keys.rs` and `scripts.rs`: the type of KEYS[i] (`channel` for a
         channel), and whether the script writes that key without having read it before its first write
Gives    wrong_type(all): the error `DQTYPE n`, where KEYS[n] has a wrong type, or nil; checks all keys, or the unread
         ones
Holds    rule 1. The first read of a key of a wrong type fails with WRONGTYPE, which also comes before the first write
Cost     one TYPE per key that is checked
]]
local wrong_type
do
  -- include TYPES
  function wrong_type(all)
    for i, expected in ipairs(types) do
      if KEYS[i] and (all or unread[i]) and expected ~= 'channel' then
        local found = redis.call('TYPE', KEYS[i]).ok
        if found ~= expected and found ~= 'none' then return redis.error_reply('DQTYPE ' .. i) end
      end
    end
  end
  local wrong = wrong_type(false)
  if wrong then return wrong end
end

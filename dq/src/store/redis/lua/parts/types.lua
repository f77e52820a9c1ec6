--[[ types: a key of a wrong type is not dq's. Looked at before anything is written, so that no step fails half-way.

Needs    TYPES and UNREAD, which the loader writes from `keys.rs` and `scripts.rs`: the type of KEYS[i] (`channel` for one that
         is no key), and whether the script writes it without having read it before its first write
Gives    wrong_type(all): the error `DQTYPE n`, n being the number of the key, or nil; of all keys, or of the unread ones
Holds    rule 1. A key that is read first says WRONGTYPE itself, before anything is written
Cost     one TYPE a key that is looked at
]]
local function wrong_type(all)
  for i, expected in ipairs(TYPES) do
    if KEYS[i] and (all or UNREAD[i]) and expected ~= 'channel' then
      local found = redis.call('TYPE', KEYS[i]).ok
      if found ~= expected and found ~= 'none' then return redis.error_reply('DQTYPE ' .. i) end
    end
  end
end
local wrong = wrong_type(false)
if wrong then return wrong end

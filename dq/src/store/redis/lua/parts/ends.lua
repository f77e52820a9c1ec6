--[[ ends: tells job sets of members that have ended. A function of its own, because Lua bounds how many locals one has.

Needs    telling: a list of `members` of the part `join` and the part `recorder`: a membership, the id of the job and how it has ended, a
         letter of `MemberEnd`, one behind the other; meta, outbox; clock
Holds    rule 18
Cost     for each set that is told: that of `post`; one PUBLISH
]]
local prefix, NUL = string.sub(KEYS.meta, 1, -5), string.char(0)
local topic = string.match(prefix, '^[^{]*{[^:]*:(.*)}:$')
-- include postcard.lua
-- As many ends as an entry may have, so that no step of a home takes long.
local by_set, in_order, MAX_AT_ONCE, ENDS = {}, {}, 128, {a = '\0', x = '\1', r = '\2', l = '\3'}
for i = 1, #telling, 3 do
  local home, set = string.match(telling[i], '^([^%z]*)%z([^%z]*)%z')
  local key = home .. NUL .. set
  if not by_set[key] or #by_set[key] >= MAX_AT_ONCE then
    by_set[key] = {target = home, head = '\0\2' .. text(set) .. '\2' .. text(topic)}
    in_order[#in_order + 1] = by_set[key]
  end
  table.insert(by_set[key], text(telling[i + 1]) .. ENDS[telling[i + 2]])
end
for _, ends in ipairs(in_order) do
  local target, batch = ends.target, ends.head .. varint(#ends) .. table.concat(ends)
  -- include post.lua
end
if #in_order > 0 then redis.pcall('PUBLISH', prefix .. 'wake', 'outbox') end

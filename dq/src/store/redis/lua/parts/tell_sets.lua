--[[ tell_sets: of the jobs that the step has ended, those that are members of job sets are none any more, and the sets are told.

Needs    for_each_move of the part `recorder`; jobs, meta, members, outbox; clock
Holds    rule 18: in the step that ends the jobs. A set that waits for its DEAD jobs is not told of them until they are gone
Cost     an HMGET field for each job that ends, HEXISTS for each that is removed or goes out; HDEL and HLEN, and what `ends` costs, if there are any
]]
local ids, letters, telling, gone = {}, {}, {}, {}
for_each_move(function(one, id)
  if string.find(one.letter, '[kxdgzo]') then ids[#ids + 1], letters[#letters + 1] = id, one.letter end
end)
for first = 1, #ids, 1000 do
  local of = redis.call('HMGET', KEYS.members, unpack(ids, first, math.min(first + 999, #ids)))
  for n = 1, #of do
    -- What another program wrote names no set.
    if of[n] and not string.find(of[n], '^[A-Za-z0-9._:-]+%z[^%z]+%z[cwr]$') then of[n] = false end
    local letter, on_dead, how = letters[first + n - 1], of[n] and string.sub(of[n], -1), 'l'
    if letter == 'k' then
      how = 'a'
    elseif letter == 'x' then
      how = on_dead == 'c' and 'x' or on_dead
    elseif letter == 'g' or letter == 'o' then
      -- A broadcast ends a member whose place it has taken, and not one that is there.
      how = redis.call('HEXISTS', KEYS.jobs, ids[first + n - 1]) == 1 and 'w' or 'l'
    end
    if of[n] and how ~= 'w' then
      telling[#telling + 1], telling[#telling + 2], telling[#telling + 3] = of[n], ids[first + n - 1], how
      gone[#gone + 1] = ids[first + n - 1]
    end
  end
end
if #gone > 0 then
  for first = 1, #gone, 1000 do redis.call('HDEL', KEYS.members, unpack(gone, first, math.min(first + 999, #gone))) end
  if redis.call('HLEN', KEYS.members) == 0 then redis.call('HDEL', KEYS.meta, 'members') end
  -- include ends.lua
end

--[[ group_rate: the rate of each group, which follows `store/rate.rs`. Forgets some groups on whose past no claim depends any more.

Needs    rate_of_groups: JOBS/MS/BURST; limit, grouped; call and format of the part `claim`; clock, metadata
Gives    rates.starts(name, text): when the rate lets the job with this record or metadata start, µs, or nil: now. rates.wait(name, starts): a job
         of the group waits until then. rates.spend(name, text): it is claimed. rates.write(): writes what has changed; when the first group
         opens that waits, or nil
Holds    rules 4, 29
Cost     a ZRANGE, and one for each group; per group that changes a ZREM and a ZADD of two entries
]]
-- include pace.lua
-- include weight.lua
local rates, by_name = {}, {}
-- What is written of a group whose next job may start then; '': at any time.
local function own_of(name, starts)
  local from = '\0' .. '6' .. name .. '\0' .. starts
  return call('ZRANGE', KEYS.grouped, '[' .. from, '(' .. from .. ':', 'BYLEX', 'LIMIT', '0', '1')[1]
end
local forgets = format('%016d', pace_of(rate_of_groups, 0).forgets)
for _, entry in ipairs(call('ZRANGE', KEYS.grouped, '[\0' .. '5', '(\0' .. '5' .. forgets, 'BYLEX', 'LIMIT', '0', int(2 * limit + 10))) do
  call('ZREM', KEYS.grouped, entry, own_of(string.sub(entry, 19), string.sub(entry, 3, 18)) or '')
end
local function of(name)
  if not by_name[name] then
    local own = own_of(name, '')
    by_name[name] = {own = own, pace = pace_of(rate_of_groups, own and tonumber(string.sub(own, -16)) or 0)}
  end
  return by_name[name]
end
function rates.starts(name, text)
  local pace, weight = of(name).pace, weight_in(text)
  if not pace.may_start(0, weight) then return select(2, pace.next(0, weight)) end
end
function rates.wait(name, starts) of(name).starts = math.min(of(name).starts or math.huge, starts) end
function rates.spend(name, text)
  local known = of(name)
  known.pace, known.is_spent = pace_of(rate_of_groups, (known.pace.next(weight_in(text)))), true
end
function rates.write()
  local opens
  for name, known in pairs(by_name) do
    if known.starts or known.is_spent then
      -- What waits since an earlier time still comes then.
      if known.own then call('ZREM', KEYS.grouped, known.own, '\0' .. '5' .. string.sub(known.own, -32, -17) .. name) end
      local next_at = known.pace.next(0)
      local starts = format('%016d', known.starts or next_at)
      call('ZADD', KEYS.grouped, '0', '\0' .. '6' .. name .. '\0' .. starts .. format('%016d', next_at), '0', '\0' .. (known.starts and '4' or '5') .. starts .. name)
      if known.starts then opens = math.min(opens or math.huge, known.starts) end
    end
  end
  return opens
end

--[[ group_rate: the rate of each group, which follows `store/rate.rs`. Forgets some groups on whose past no claim depends any more.

Needs    most_jobs, period, burst: the rate; limit, grouped, micros; call and format of the part `claim`
Gives    rates.of(name): {from: when the rate lets the next job of the group come, µs; and what is written}. rates.spend(name). rates.write(): writes
         what has changed; a group of which a job waits for its rate has `waits`
Holds    rules 4, 29
Cost     a ZRANGE, and one for each group; per group that changes a ZREM of three entries and a ZADD of two
]]
local per = period * 1005
local interval, most, by_name = math.ceil(per / most_jobs), period * 5 + math.floor(burst * per / most_jobs), {}
local function entries_of(name, time) return '\0' .. '6' .. name .. '\0' .. time, '\0' .. '5' .. time .. name, '\0' .. '4' .. time .. name end
for _, entry in ipairs(call('ZRANGE', grouped, '[\0' .. '5', '(\0' .. '5' .. format('%016d', micros - most), 'BYLEX', 'LIMIT', '0', int(2 * limit + 10))) do
  call('ZREM', grouped, entries_of(string.sub(entry, 19), string.sub(entry, 3, 18)))
end
function rates.of(name)
  if not by_name[name] then
    local entry = call('ZRANGE', grouped, '[\0' .. '6' .. name .. '\0', '(\0' .. '6' .. name .. '\1', 'BYLEX', 'LIMIT', '0', '1')[1]
    local written = entry and string.sub(entry, -16)
    by_name[name] = {from = math.min(math.max(tonumber(written or 0), micros - most), micros + interval), written = written}
  end
  return by_name[name]
end
function rates.spend(name)
  local known = rates.of(name)
  known.from, known.is_spent = math.max(known.from, micros - most) + interval, true
end
function rates.write()
  for name, known in pairs(by_name) do
    if known.waits or known.is_spent then
      -- What waits since an earlier time still comes then.
      local own, spent, waiting = entries_of(name, known.written or '')
      if known.written then call('ZREM', grouped, own, spent) end
      own, spent, waiting = entries_of(name, format('%016d', known.from))
      call('ZADD', grouped, '0', own, '0', known.waits and waiting or spent)
      if known.waits then
        pauses = pauses or {next = math.huge}
        pauses.next = math.min(pauses.next, math.ceil(known.from / 1000))
      end
    end
  end
end

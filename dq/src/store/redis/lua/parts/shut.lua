--[[ shut: notes what the limits leave to later. Where due jobs have no slot, no node comes for the head, and the end of a run wakes the
watcher, which comes before only for a tick; where the rate lets none come yet, the node comes when it does, and in a topic with groups even if it has seen no head: it has not looked at pauses.

Needs    limited, in_runs: as the part `limits` gives them; next_at, starts_at, of the part `claim`; limit, of the part `limits`; choose, next_tick, of the part `ticks`; shut, has_groups: fields of meta; claimed, more, come_at, changes, micros; watcher, node, meta
Gives    more, come_at: nothing more is to be had now, and when it will be, if that has a time
Holds    rules 23, 29
Cost     nothing, or an HDEL and a signal
]]
-- What is left when ticks were claimed is for the next transfer.
if choose then more, come_at = true, floor end
-- Also where nothing is claimed: a time that is too far away, as after a clock that jumped back, is cut once.
if next_at and (claimed > 0 or next_at > micros) then changes[#changes + 1], changes[#changes + 2] = 'opens', int(next_at) end
if limited and more and in_runs + claimed >= limited then
  if shut ~= int(limited) then changes[#changes + 1], changes[#changes + 2] = 'shut', int(limited) end
  more, come_at = false, next_tick
else
  if shut then
    call('HDEL', KEYS.meta, 'shut')
    -- The watcher sleeps until a slot is free, and does not know of what is due later.
    if come_at and watcher and watcher ~= node then redis.pcall('PUBLISH', string.sub(KEYS.meta, 1, -5) .. 'wake', 'due') end
  end
  if starts_at and starts_at > micros and not choose then
    come_at = come_at or has_groups and limit == '0' and 0
    more, come_at = false, come_at and math.max(come_at, math.ceil(starts_at / 1000)) or nil
    if next_tick then come_at = math.min(come_at or next_tick, next_tick) end
  end
end

--[[ lapse: cuts the ends of roles to what a holder could have asked for, as after a clock that jumped back (rule 20).

Needs    meta; ROLE_SLACK; clock
Gives    lapse(name, lapses, latest): when the role lapses, or what it was if it has no end. `latest` is the end of the
         caller's own fallback, which its jitter may have made a fifth shorter
Cost     one HSET if it is cut
]]
local function lapse(name, lapses, latest)
  latest = latest + math.ceil((latest - floor) / 4) + ROLE_SLACK
  if (tonumber(lapses or '') or 0) <= latest then return lapses end
  redis.call('HSET', KEYS.meta, name .. '-until', int(latest))
  return latest
end

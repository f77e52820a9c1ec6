--[[ drained: how many jobs that were due before a drain still wait, and whether the node comes for one.

Needs    drained_at: when the drain began, ms; first_due, come_at, left, which it replaces; has_groups, priorities: fields of meta; MAX_LEFT;
         delayed, grouped; PRIORITY, which the loader writes; call; clock
Holds    rule 29
Cost     a ZCOUNT for each priority, and one or two ZRANGE where there are groups
]]
-- Of the jobs at the turn of their group some may be due before the drain: the next claim finds out.
local function stands(from, to) return redis.call('ZRANGE', KEYS.grouped, '[\0' .. from, '(\0' .. to, 'BYLEX', 'LIMIT', '0', '1')[1] end
if has_groups and (stands('0', '3') or stands('7', '8')) then first_due = -1 end
if first_due > drained_at then come_at = nil end
for shift = 0, has_groups and 5 * PRIORITY or priorities and 2 * PRIORITY or 0, PRIORITY do
  left = left + call('ZCOUNT', KEYS.delayed, shift > 0 and int(shift) or '-inf', int(shift + drained_at))
end
left = math.min(left, MAX_LEFT)

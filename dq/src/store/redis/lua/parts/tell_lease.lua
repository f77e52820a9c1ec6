--[[ tell_lease: tells one other node how long a new lease lasts, so that it looks at the leases then (rule 20).

Needs    node, lease; meta; watcher, watcher_until, watcher_told, standby, standby_until, standby_told: fields of meta; MAX_LEASE;
         call, format, changes of the part `claim`; clock
Gives    in changes, who was told, and when the lease ends: another node that has a role, or all nodes (`*` and the node of the lease) if
         none has or the one that has does not listen. It does nothing if the same node, or all while none has a role, were told of
         another lease that ends before: then they look at all leases. A node that has a role now may have come after all were told
Cost     a PUBLISH once a lease; two while the node does not listen
]]
local role, holder, told, lasts = 'standby', false, standby_told, math.min(lease, MAX_LEASE)
if watcher and watcher ~= node and floor <= (tonumber(watcher_until or '') or -1) then
  role, holder, told = 'watcher', watcher, watcher_told
elseif standby and standby ~= node and floor <= (tonumber(standby_until or '') or -1) then
  holder = standby
end
local all, told_end, was_told = '*' .. node, string.match(told or '', '^(%d+) (.*)$')
local told_until = was_told == (holder or all) and tonumber(told_end) or 0
if told_until <= floor or told_until > floor + lasts then
  local text, wake = format('lease %d %s', lasts, node), string.sub(KEYS.meta, 1, -5) .. 'wake'
  if not holder or redis.pcall('PUBLISH', wake .. ':' .. holder, text) == 0 then
    holder = all
    redis.pcall('PUBLISH', wake, text)
  end
  local count = #changes
  changes[count + 1], changes[count + 2] = role .. '-told', format('%d %s', floor + lasts, holder)
end

--[[ signal: sends a signal. A signal is a hint, so a server that refuses PUBLISH does no harm (rule 23).

Needs    wake (channel), meta; clock
Gives    publish(channel, text): how many received it. signal(text, role, holder, lapses): to the holder of a role while the
         role lasts, otherwise, or when the holder does not listen, to all nodes. A holder that does not listen loses the
         role, so that one of the others takes it and comes when the head is due
Cost     one PUBLISH; two and an HDEL when the holder does not listen
]]
local function publish(channel, text) return redis.pcall('PUBLISH', channel, text) end
local function signal(text, role, holder, lapses)
  local lasts = holder and lapses and floor <= tonumber(lapses)
  if lasts and publish(wake .. ':' .. holder, text) ~= 0 then return end
  if lasts then redis.call('HDEL', meta, role, role .. '-until') end
  publish(wake, text)
end

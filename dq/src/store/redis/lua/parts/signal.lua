--[[ signal: sends a signal. A signal is a hint, so a server that refuses PUBLISH does no harm (rule 23).

Needs    wake (channel); clock
Gives    publish(channel, text): how many received it. signal(text, holder, lapses): to the holder of a role while the role
         lasts, otherwise, or when the holder does not listen, to all nodes
Cost     one PUBLISH, two when the holder does not listen
]]
local function publish(channel, text) return redis.pcall('PUBLISH', channel, text) end
local function signal(text, holder, lapses)
  local lasts = holder and lapses and floor <= tonumber(lapses)
  if not lasts or publish(wake .. ':' .. holder, text) == 0 then publish(wake, text) end
end

--[[ signal: sends a signal. A signal is a hint, so a server that refuses PUBLISH does no harm (rule 23).

Needs    wake (channel); clock
Gives    publish(channel, text). signal(text, holder, lapses): to the holder of a role while the role lasts, otherwise
         to all nodes
Cost     one PUBLISH
]]
local function publish(channel, text) redis.pcall('PUBLISH', channel, text) end
local function signal(text, holder, lapses)
  if holder and lapses and floor <= tonumber(lapses) then publish(wake .. ':' .. holder, text) else publish(wake, text) end
end

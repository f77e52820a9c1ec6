--[[ signal: tells that something is due earlier. Hints only, so a refused PUBLISH spoils nothing (rule 23).

Needs    wake (channel), floor, int
Gives    publish(channel, text); signal(text, node, until): to the node while its role lasts, else to all nodes
Cost     one PUBLISH
]]
local function publish(channel, text) redis.pcall('PUBLISH', channel, text) end
local function signal(text, node, ends)
  if node and ends and floor <= tonumber(ends) then publish(wake .. ':' .. node, text) else publish(wake, text) end
end

--[[ back_off: a handler backed off: pauses the topic until then, unless it is paused for longer.

Needs    backs_off: until_ms and the id of the job; node, meta, wake, clock
Holds    rule 29
Cost     an HGET; an HSET and a signal, if the topic is not paused for longer
]]
local before = redis.call('HGET', meta, 'paused')
local ends_at = before and tonumber(string.match(before, '^%d+:(%d+):') or math.huge) or 0
if ends_at < backs_off.until_ms then
  local function encoded(text)
    return (string.gsub(text, '[%c %%:;]', function(char) return string.format('%%%02x', string.byte(char)) end))
  end
  local since = ends_at > floor and string.match(before, '^%d+') or int(floor)
  local reason = encoded('the handler of job ' .. backs_off.id .. ' backed off')
  redis.call('HSET', meta, 'paused', since .. ':' .. int(backs_off.until_ms) .. ':' .. encoded(node) .. ':' .. reason)
  redis.pcall('PUBLISH', wake, 'paused')
end

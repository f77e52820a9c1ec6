--[[ back_off: handlers backed off: pauses the groups of their jobs, and the topic for jobs without a group, unless they are paused for longer.

Needs    backs_off: until_ms and the id of the job, by the name of its group or ''; node, meta, wake, clock, groups
Holds    rule 29
Cost     an HGET; an HSET and a signal, if the topic is not paused for longer; for each group a ZRANGE, a ZREM and a ZADD
]]
local function encoded(text)
  return (string.gsub(text, '[%c %%:;]', function(char) return string.format('%%%02x', string.byte(char)) end))
end
for name, by in pairs(backs_off) do
  local before = (name == '' and redis.call('HGET', KEYS.meta, 'paused') or name ~= '' and seating.pause_of(name)) or ''
  local ends_at = before ~= '' and tonumber(string.match(before, '^%d+:(%d+):') or math.huge) or 0
  if ends_at < by.until_ms then
    local since = ends_at > floor and string.match(before, '^%d+') or int(floor)
    local now = since .. ':' .. int(by.until_ms) .. ':' .. encoded(node) .. ':' .. encoded('the handler of job ' .. by.id .. ' backed off')
    if name == '' then
      redis.call('HSET', KEYS.meta, 'paused', now)
      redis.pcall('PUBLISH', KEYS.wake, 'paused')
    else
      seating.set_pause(name, before, now)
    end
  end
end

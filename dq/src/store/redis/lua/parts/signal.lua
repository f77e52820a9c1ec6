--[[ signal: sends a signal. A signal is a hint, so a server that refuses PUBLISH does no harm (rule 23).

Needs    wake (channel), meta; for head_of(delayed) priorities and what the part `head` needs; clock
Gives    publish(channel, text): how many received it. signal(text, role, holder, lapses, due): to the holder of a role while
         the role lasts, otherwise, or when the holder does not listen, to all nodes. A holder that does not listen loses the
         role, so that one of the others takes it and comes when the head is due. A holder that listens is told `due`, the
         time of the head, if it is given, and its role lapses if it does not come then. head_of(place): the time of the first entry of a
         ZSET, of `delayed` as the part `head` says, or nil. signal_earlier(place, before, earliest, tick): if a place,
         d or b (broadcasts), has an earlier head now than `before`, or nil, or a schedule is due at `tick`, or nil: the watcher may sleep past it, or be dead. watcher, watcher_until: fields of meta
Cost     one PUBLISH; two and an HDEL when the holder does not listen; an HSET when the role lapses earlier than before
]]
local function publish(channel, text) return redis.pcall('PUBLISH', channel, text) end
local function signal(text, role, holder, lapses, due)
  local lasts = holder and lapses and floor <= (tonumber(lapses) or -1)
  if lasts and publish(KEYS.wake .. ':' .. holder, due and text .. ' ' .. int(due) or text) ~= 0 then
    local until_due = due and math.max(due, floor) + 200
    if due and until_due < tonumber(lapses) then redis.call('HSET', KEYS.meta, role .. '-until', int(until_due)) end
    return
  end
  if lasts then redis.call('HDEL', KEYS.meta, role, role .. '-until') end
  publish(KEYS.wake, text)
end
local function head_of(place)
  local head
  if place == KEYS.delayed and priorities then
    -- include head.lua
  else
    head = redis.call('ZRANGE', place, 0, 0, 'WITHSCORES')[2]
  end
  return head
end
local function signal_earlier(place, before, earliest, tick)
  local is_earlier = earliest and earliest < (tonumber(before) or math.huge)
  if tick and not is_earlier then earliest, is_earlier = tick, true end
  if not is_earlier then return end
  if place == 'd' then return signal('due', 'watcher', watcher, watcher_until, earliest) end
  local publisher = redis.call('HMGET', KEYS.meta, 'publisher', 'publisher-until')
  signal('broadcast', 'publisher', publisher[1], publisher[2])
end

--[[ calls: a repeated call is the same call. Of each producer the answers of its last 16 batches are kept for an hour.

Needs    calls, number (text)
Gives    keep(answer): keeps the answer of this batch
Returns  {'kept', answer} of a batch that was executed before, {'late'} of one that was overtaken and never will be
Holds    rule 18; a repeat writes too (its EXPIRE): newer servers confirm only by what a connection has written itself, so a
         `WAIT` behind a repeat on a new connection would else be for nothing
Cost     HMGET; HSET and EXPIRE
]]
local slot = int(number % 16)
local called = redis.call('HMGET', calls, slot, 'high')
local prefix = number .. ':'
if called[1] and string.sub(called[1], 1, #prefix) == prefix then
  redis.call('EXPIRE', calls, 3600)
  return {'kept', string.sub(called[1], #prefix + 1)}
end
if called[2] and tonumber(called[2]) > tonumber(number) then return {'late'} end
local function keep(answer)
  redis.call('HSET', calls, slot, prefix .. answer, 'high', number)
  redis.call('EXPIRE', calls, 3600)
end

--[[ calls: recognizes a repeated batch. The answers of a producer's last 16 batches are kept for an hour.

Needs    calls; number (text); clock
Gives    keep_answer(answer): keeps the answer of this batch
Returns  {'kept', answer} if the batch was executed before; {'late'} if its number was passed over
Holds    rule 18. A repeat writes too (EXPIRE): newer servers confirm only what the connection itself has written, so a
         `WAIT` behind a repeat on a new connection needs a write
Cost     HMGET; HSET and EXPIRE
]]
local slot = int(number % 16)
local kept = redis.call('HMGET', calls, slot, 'high')
local prefix = number .. ':'
if kept[1] and string.sub(kept[1], 1, #prefix) == prefix then
  redis.call('EXPIRE', calls, 3600)
  return {'kept', string.sub(kept[1], #prefix + 1)}
end
if kept[2] and tonumber(kept[2]) > tonumber(number) then return {'late'} end
local function keep_answer(answer)
  redis.call('HSET', calls, slot, prefix .. answer, 'high', number)
  redis.call('EXPIRE', calls, 3600)
end

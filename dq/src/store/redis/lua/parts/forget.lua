--[[ forget: forgets histories of jobs that are gone, once their time is over (rule 32).

Needs    meta; history: field of meta; limit; clock
Gives    more_histories: whether there may be more to forget
Cost     ZRANGE, HDEL and ZREM
]]
local more_histories = false
if history then
  local prefix = string.sub(meta, 1, -5)
  local over = redis.pcall('ZRANGE', prefix .. 'history-ends', '-inf', floor, 'BYSCORE', 'LIMIT', 0, limit)
  if #over > 0 then
    redis.pcall('HDEL', prefix .. 'history', unpack(over))
    redis.pcall('ZREM', prefix .. 'history-ends', unpack(over))
    more_histories = #over == limit
  end
end

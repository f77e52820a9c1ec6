--[[ keep_history: says what the topic keeps of the histories of its jobs. Without any it forgets those that it has.

KEYS[1]  {app:topic}:meta          HASH  protocol, history: how many moves of a job are kept, and for how long after its end, ms
KEYS[2]  {app:topic}:history       HASH  job id -> history
KEYS[3]  {app:topic}:history-ends  ZSET  id of a job that is gone -> when its history is forgotten, ms
ARGV[1]  `moves:after`, or '' for no histories

Returns  1
Holds    rules 1, 31
Cost     O(1); the server frees what is forgotten in the background
]]
-- include types.lua
local protocol = redis.call('HGET', KEYS.meta, 'protocol')
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS.meta, 'history')
  -- A user who may not use UNLINK waits until everything is freed.
  if type(redis.pcall('UNLINK', KEYS.history, KEYS.history_ends)) == 'table' then redis.call('DEL', KEYS.history, KEYS.history_ends) end
else
  redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL, 'history', ARGV[1])
end
return 1

--[[ version: refuses a topic that is kept under another protocol version, and reads fields of meta.

Needs    meta; PROTOCOL, which the loader writes
Gives    protocol, last_fence, has_retains, watcher, watcher_until: fields of meta, each false where it is missing
Returns  the error `DQVERSION n` if the topic is kept under version n
Cost     one HMGET
]]
local protocol, last_fence, has_retains, watcher, watcher_until =
  unpack(redis.call('HMGET', meta, 'protocol', 'fence', 'retains', 'watcher', 'watcher-until'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end

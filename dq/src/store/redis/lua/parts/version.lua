--[[ version: a topic belongs to one version of the protocol.

Needs    meta; PROTOCOL, which the loader writes
Gives    known: the fields protocol, fence, retains, watcher, watcher-until of meta
Returns  the error `DQVERSION n` where the topic was written under version n
Cost     one HMGET
]]
local known = redis.call('HMGET', meta, 'protocol', 'fence', 'retains', 'watcher', 'watcher-until')
if known[1] and known[1] ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. known[1]) end

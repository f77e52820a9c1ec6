--[[ settings: what `version` does, for the steps that obey the state of the topic (rule 29).

Needs    meta; PROTOCOL, which the loader writes
Gives    what `version` gives, and paused, draining, usual: fields of meta, each false where it is missing
Returns  the error `DQVERSION n` if the topic is kept under version n
Cost     one HMGET
]]
local protocol, last_fence, has_retains, watcher, watcher_until, largest, far_at, paused, draining, usual, events, history =
  unpack(redis.call('HMGET', meta, 'protocol', 'fence', 'retains', 'watcher', 'watcher-until', 'largest', 'far',
    'paused', 'draining', 'delay', 'events', 'history'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end

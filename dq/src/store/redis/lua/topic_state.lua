--[[ topic_state: whether the topic is paused or drains, its default delay, and how many of its jobs run at a time. Reads only.

KEYS[1]  {app:topic}:meta  HASH  paused, draining, delay, concurrency

Returns  {clock ms, paused, draining, delay, concurrency}, each text empty where it is missing. The clock says whether the pause has ended
Holds    rule 29
Cost     O(1)
]]
-- include types.lua
-- include clock.lua
local state = redis.call('HMGET', meta, 'paused', 'draining', 'delay', 'concurrency')
return {floor, state[1] or '', state[2] or '', state[3] or '', state[4] or ''}

--[[ topic_state: whether the topic is paused or drains, its default delay and its limits. Reads only.

KEYS[1]  {app:topic}:meta  HASH  paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst

Returns  {clock ms, and these fields}, each text empty where it is missing. The clock says whether the pause has ended
Holds    rule 29
Cost     O(1)
]]
-- include clock.lua
local state = redis.call('HMGET', KEYS.meta, 'paused', 'draining', 'delay', 'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_rate', 'group_max_waiting', 'group_burst')
for i = 1, #state do state[i] = state[i] or '' end
return {floor, unpack(state)}

--[[ topic_state: whether the topic is paused or drains, its default delay and its limits. Reads only.

KEYS[1]  {app:topic}:meta  HASH  paused, draining, delay, cluster_concurrency, rate, max_waiting, group_concurrency, group_rate, group_max_waiting, group_burst

Returns  {clock ms, {these fields}}. The clock says whether the pause has ended
Holds    rule 29
Cost     O(1)
]]
-- include clock.lua
return {floor, redis.call('HMGET', KEYS.meta, 'paused', 'draining', 'delay', 'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_rate', 'group_max_waiting', 'group_burst')}

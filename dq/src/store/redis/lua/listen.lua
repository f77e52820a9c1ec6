--[[ listen: says that somebody listens to the moves of the topic, for the next 30 s.

KEYS[1]  {app:topic}:meta  HASH  protocol, events: until when the steps tell their moves, ms
ARGV[1]  for how long, ms

Returns  1
Holds    rules 1, 31
Cost     O(1)
]]
-- include version.lua
-- include clock.lua
redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL, 'events', int(floor + ARGV[1]))
return 1

--[[ listed: reads the directory of an app, in the order of the names. Reads only.

KEYS[1]  {app}:topics  ZSET  the topics of the app, all with the score 0
ARGV[1]  where it begins, as ZRANGE BYLEX takes it
ARGV[2]  how many names to read at most, 1..=500

Returns  {the clock, s, {the names}}
Holds    rule 1
Cost     two commands
]]
local names = redis.call('ZRANGE', KEYS[1], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])
return {redis.call('TIME')[1], names}

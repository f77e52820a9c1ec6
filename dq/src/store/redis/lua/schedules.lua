--[[ schedules: reads a page of the index of schedules, in the order of their ids. Reads only.

KEYS[1]  {app:topic}:schedules  ZSET  ids of schedules, all with score 0
ARGV[1]  where the page begins: `-`, or `(` and the id behind which it does
ARGV[2]  the most ids, 1..=1000

Returns  ids; some may be of schedules that are gone
Holds    rule 30
Cost     O(log n + page)
]]
return redis.call('ZRANGE', schedules, ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])

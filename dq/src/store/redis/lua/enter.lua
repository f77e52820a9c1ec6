--[[ enter: enters a topic into the directory of its app.

KEYS[1]  {app}:topics   ZSET  the topics of the app, all with the score 0
KEYS[2]  {app}:entered  HASH  topic -> when it was entered last, s
ARGV[1]  the topic

Returns  1 if it was not there
Holds    rule 1, as the part on the directory says
Cost     three commands
]]
redis.call('HSET', KEYS[2], ARGV[1], redis.call('TIME')[1])
return redis.call('ZADD', KEYS[1], 0, ARGV[1])

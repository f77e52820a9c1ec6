--[[ unlist: removes topics that held nothing from the directory of their app, unless they were entered since.

KEYS[1]  {app}:topics   ZSET  the topics of the app, all with the score 0
KEYS[2]  {app}:entered  HASH  topic -> when it was entered last, s
ARGV[1]  what was entered later than this stays, s
ARGV[2]  and on: topics that held nothing two minutes or more after that, 1..=500

Returns  how many were removed
Holds    rule 1
Cost     one command, and two for all that it removes
]]
local names, gone = {unpack(ARGV, 2)}, {}
for i, entered in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
  if (tonumber(entered or 0) or 0) <= tonumber(ARGV[1]) then gone[#gone + 1] = names[i] end
end
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
end
return #gone

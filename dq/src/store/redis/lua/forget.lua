--[[ forget: removes topics that hold nothing from the directory of an app.

KEYS[1]  {app}:topics                SET   the topics of the app
KEYS[2]  and on, three for each topic: {app:topic}:jobs, {app:topic}:far-jobs and {app:topic}:broadcast-jobs, HASH
ARGV[1]  and on: the topics, in the same order

Returns  how many topics were removed
Holds    rule 1; an add enters its topic behind its own step, so a topic with jobs is never left out
Cost     one EXISTS for each topic
]]
local empty = {}
for i, topic in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]) == 0 then empty[#empty + 1] = topic end
end
if #empty == 0 then return 0 end
return redis.call('SREM', KEYS[1], unpack(empty))

--[[ held: says which topics hold anything, and removes the others from the directory of their app.

KEYS[1]  {app}:topics                ZSET  the topics of the app, all with the score 0
KEYS[2]  and on, five for each topic: {app:topic}:jobs, {app:topic}:far-jobs, {app:topic}:broadcast-jobs and {app:topic}:sets, HASH, and {app:topic}:outbox, ZSET
ARGV[1]  how many topics to find at most
ARGV[2]  and on: the topics, in the same order, 1..=500

Returns  {how many topics it looked at, and then the topics that hold anything}
Holds    rule 1; an add enters its topic behind its own step, so a topic with jobs is never left out
Cost     one EXISTS for each topic that it looks at, and one ZREM
]]
local most, answer, empty, looked_at = tonumber(ARGV[1]), {}, {}, 0
for i = 2, #ARGV do
  looked_at = looked_at + 1
  local first = 5 * looked_at - 3
  if redis.call('EXISTS', KEYS[first], KEYS[first + 1], KEYS[first + 2], KEYS[first + 3], KEYS[first + 4]) == 0 then
    empty[#empty + 1] = ARGV[i]
  else
    answer[#answer + 1] = ARGV[i]
    if #answer == most then break end
  end
end
-- A user who may only read gets the answer too; the names stay, and harm nobody.
if #empty > 0 then redis.pcall('ZREM', KEYS[1], unpack(empty)) end
return {looked_at, unpack(answer)}

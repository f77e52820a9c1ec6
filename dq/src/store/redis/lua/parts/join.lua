--[[ join: jobs of an entry of an outbox become members of a job set; of those that were refused the set is told that they have left.

Needs    ARGV: the last one is the membership: home, NUL, the name of the set, NUL, and what the job does if it becomes DEAD; before it, behind the
         jobs, the ids of those that are refused for certain and were not sent; answers, groups, FIRST_JOB; meta, members, outbox; clock
Holds    rule 18: in the step that adds the jobs. A job that was a member of another set leaves that
Cost     HMGET, HSET
]]
local membership, telling, ids, fields = ARGV[#ARGV], {}, {}, {}
local function leaves(of, id) telling[#telling + 1], telling[#telling + 2], telling[#telling + 3] = of, id, 'l' end
for i, answer in ipairs(answers) do
  local id = ARGV[FIRST_JOB + 2 * i - 2]
  if string.find(answer, '^[ADUXWIE]') then ids[#ids + 1] = id else leaves(membership, id) end
end
for i = FIRST_JOB + 2 * #answers, #ARGV - 1 do leaves(membership, ARGV[i]) end
-- Nothing, where another program wrote what names no set.
local function set_of(of) return string.match(of, '^[A-Za-z0-9._:-]+%z[^%z]+%z') end
local old = #ids > 0 and redis.call('HMGET', KEYS.members, unpack(ids)) or {}
for i, id in ipairs(ids) do
  if old[i] and set_of(old[i]) and set_of(old[i]) ~= set_of(membership) then leaves(old[i], id) end
  fields[2 * i - 1], fields[2 * i] = id, membership
end
if #ids > 0 then
  redis.call('HSET', KEYS.members, unpack(fields))
  redis.call('HSET', KEYS.meta, 'members', 1)
end
-- include ends.lua

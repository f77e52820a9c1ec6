--[[ job_sets: says which job sets live in a topic.

KEYS[1]  {app:topic}:sets       HASH  name -> state, members, acked, dead, left, since, cancels, with commas; name, NUL -> its last job
KEYS[2]  {app:topic}:set-order  ZSET  name -> 0, or once the set has ended when, ms
KEYS[3]  {app:topic}:set:NAME   ZSET  topic, NUL, id of each member -> 0, 1: its delete is on its way, or 2: it has ended
ARGV[1]  the name of one set; '' for a page
ARGV[2]  how many come before the page
ARGV[3]  the most sets of a page, or the most members of one set

Returns  {{name, set, members}, ...}: of one set some of the members that have not ended, of a page none
Holds    rule 18
Cost     O(log sets + page)
]]
if ARGV[1] == '' then
  local answer, last = {}, ARGV[2] + ARGV[3] - 1
  local names = redis.call('ZRANGE', KEYS.set_order, ARGV[2], string.format('%d', last))
  local rows = #names > 0 and redis.call('HMGET', KEYS.sets, unpack(names)) or {}
  for n, name in ipairs(names) do
    if rows[n] then answer[#answer + 1] = {name, rows[n], {}} end
  end
  return answer
end
local row = redis.call('HGET', KEYS.sets, ARGV[1])
if not row then return {} end
return {{ARGV[1], row, redis.call('ZRANGE', KEYS.set, '-inf', '(2', 'BYSCORE', 'LIMIT', 0, ARGV[3])}}

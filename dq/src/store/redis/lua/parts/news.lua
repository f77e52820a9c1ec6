--[[ news: notes when the first of the jobs that are due much later is due, and finds out whether the watcher must come earlier than
it knows.

Needs    meta; head: the first time in `delayed`, or nil; far_at; clock; of the new jobs: earliest in
         `delayed`, and earliest_far of those that are due much later, or math.huge
Gives    come: the time at which the watcher must come, or nil
Cost     nothing for most batches; otherwise one HSET
]]
local come
local knows_far = earliest_far == math.huge or (tonumber(far_at or '') or math.huge) <= earliest_far
if not knows_far then redis.call('HSET', KEYS.meta, 'far', int(earliest_far)) end
if earliest < (tonumber(head) or math.huge) then
  come = earliest
elseif not knows_far and earliest_far < (tonumber(head) or math.huge) then
  come = earliest_far
end

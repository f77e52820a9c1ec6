--[[ heavy_batch: whether a batch has a job that is heavier than all that a rate allows in a period. Such a batch is rare, so it need not be plain.

Needs    what `add` has; rate: field of meta
Gives    if it has one, is_plain: false, and heavy(id, options, record): the answer to a job that comes into the queue, or nil
Holds    rule 29: a broadcast and a schedule spend nothing
Cost     one HMGET
]]
-- include metadata.lua
-- include weight.lua
-- include heavy.lua
local at, has_one = FIRST_JOB, false
for i = 6, 4 + 2 * groups, 2 do
  for _ = 1, ARGV[i + 1] do
    has_one, at = has_one or too_heavy(ARGV[at + 1]), at + 2
  end
end
if has_one then
  is_plain = false
  function heavy(id, options, record)
    return options.deliver ~= 'b' and string.sub(id, 1, 12) ~= 'dq:schedule:' and too_heavy(record) or nil
  end
end

--[[ set_back: sets the position of a source in its target back, which the source has never given out.

KEYS[1]  {app:topic}:calls:PRODUCER  STRING  the position of the outbox of a source, and the answer to its last entry
ARGV[1]  the position that the target has, as the part `calls` has it
ARGV[2]  the position that it gets

Returns  1, or 0 if the target has another position by now
Holds    rule 18: an entry at this position is late, as one that has arrived
Cost     one GET, one DEL and one SET
]]
if string.match(redis.call('GET', KEYS.calls) or '0', '^[%d,]+') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS.calls)
redis.call('SET', KEYS.calls, ARGV[2] .. ' ' .. string.match(ARGV[2], '^%d+') % 16 .. '=-')
return 1

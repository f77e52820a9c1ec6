--[[ says: keeps what the code of a node says of the rate of the topic and of each group, for adds of jobs with a weight.

Needs    by_code: field of meta, or false; ARGV[10], ARGV[13]; changes, meta
Gives    changes
Holds    rule 29
Cost     nothing, or an HDEL
]]
local says = ARGV[13] .. ' ' .. ARGV[10]
if says == ' ' then
  redis.call('HDEL', KEYS.meta, 'rates')
elseif says ~= by_code then
  changes[#changes + 1], changes[#changes + 2] = 'rates', says
end

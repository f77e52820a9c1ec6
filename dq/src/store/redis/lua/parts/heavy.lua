--[[ heavy: which jobs are heavier than all that a rate allows in a period. The store knows the rate that was set, and what the code of the last
node says that transferred.

Needs    meta; rate: field of meta; metadata, weight_in
Gives    too_heavy(record): the letter H (topic) or J (each group), the rate as `meta` has it, and `;`, or nil
Holds    rule 29
Cost     one HMGET
]]
local function heavy_by()
  local by_code, set_of_groups = unpack(redis.call('HMGET', KEYS.meta, 'rates', 'group_rate'))
  local of_topic, of_groups = string.match(by_code or '', '^(%S*) (%S*)$')
  local function limit_of(letter, set, code)
    local text = string.match(set or '', '^%d+:([%d/]+):') or code or ''
    local most, burst = string.match(text, '^(%d+)/%d+/(%d+)$')
    return most and most + burst or math.huge, letter .. text .. ';'
  end
  local most, answer = limit_of('H', rate, of_topic)
  local most_of_group, answer_of_group = limit_of('J', set_of_groups, of_groups)
  return function(record)
    local weight = weight_in(record)
    if weight > most then return answer end
    if weight > most_of_group and field(record, FIELD.group) then return answer_of_group end
  end
end
local too_heavy = heavy_by()

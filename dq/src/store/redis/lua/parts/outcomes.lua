--[[ outcomes: a settle of outcomes that are not only acks, or of acks of jobs that leave something behind: a retention, or what a
pending command says; or while due jobs wait for a slot.

Needs    what `settle` has: its keys and arguments, acks, others, protocol, watcher, watcher_until, events, history_setting, shut, priorities, rare, has_pending,
         stale; note and keep_notes, which have no values yet, and tells_moves, the field `members` of meta
Returns  the answer of the step
Holds    what `settle` holds: it reads and checks everything before its first write
Cost     an ack one HMGET field and two HDEL fields, any other outcome O(log n)
]]
-- include clock.lua
-- include types.lua
-- include bulk.lua
-- include signal.lua
-- include metadata.lua
-- include overrides.lua
-- include pending.lua
-- include recorder.lua
-- include score.lua
-- include groups.lua
-- include leave.lua
-- include lease.lua
local ids, expected, at = {}, {}, {}
for i = 1, acks do ids[i] = ARGV[6 + i] end
for group = 7 + acks, others - 1, 2 do
  for _ = 1, ARGV[group + 1] do expected[#expected + 1] = ARGV[group] end
end
for i = others, #ARGV, 5 do
  ids[#ids + 1], expected[#ids + 1] = ARGV[i], ARGV[i + 1]
  at[#ids] = i
end
local tokens, dropped, later = read('HMGET', KEYS.running, ids), {}, {}
-- Positions of outcomes of this node's runs: acks that only remove the job, and those that need more.
local plain, planned = {}, {}
for i = 1, #ids do
  if tokens[i] ~= expected[i] then
    stale[#stale + 1] = i
  elseif i > acks or has_pending or retains or has_groups then
    planned[#planned + 1] = i
  else
    plain[#plain + 1] = ids[i]
  end
end
for _, i in ipairs(planned) do
  -- A key of a wrong type is found before the first write.
  local outcome = i > acks and ARGV[at[i] + 2]
  if outcome == 'n' then redis.call('ZCARD', KEYS.schedules) end
  if outcome and #ARGV[at[i] + 3] > 1 and string.find(outcome, '^[ax]') then redis.call('ZCARD', KEYS.outbox) end
end
if rare > 0 or #planned > 0 then
  local wrong = wrong_type(true)
  if wrong then return wrong end
end
local planned_ids, positions, commands, texts = {}, {}, {}, {}
for k, i in ipairs(planned) do
  planned_ids[k] = ids[i]
  positions[ids[i]] = i
end
if has_pending then
  if redis.call('EXISTS', KEYS.replacements) == 1 then
    for k = #planned, fitting({KEYS.replacements}, planned_ids, most) + 1, -1 do
      later[#later + 1] = planned[k]
      planned[k], planned_ids[k] = nil, nil
    end
  end
  commands = read('HMGET', KEYS.pending, planned_ids)
end
if #planned > 0 then
  -- Of an ack without a pending command, only a retention matters.
  local reads = {}
  for k, i in ipairs(planned) do
    if i > acks or retains or has_groups or commands[k] then reads[#reads + 1] = ids[i] end
  end
  for k, text in ipairs(metadata_of(reads)) do texts[reads[k]] = text end
end
local crash_texts = rare > 0 and read('HMGET', KEYS.crashes, planned_ids) or {}
redis.call('HDEL', KEYS.pending, '')
write('HDEL', KEYS.running, plain)
write('HDEL', KEYS.jobs, plain)
if rare > 0 then
  write('HDEL', KEYS.crashes, plain)
  write('HDEL', KEYS.metadata, plain)
end
note('k', '', node, plain, 1, #plain)
note('ea', '', node, plain, 1, #plain)
local function end_plan()
  for _, id in ipairs(plan.dropped) do dropped[#dropped + 1] = positions[id] end
  write_plan()
end
if #planned > 0 then
  for k, i in ipairs(planned) do
    local outcome, argument, new, keeps = 'a', '', '', false
    if i > acks then outcome, argument, new = ARGV[at[i] + 2], ARGV[at[i] + 3], ARGV[at[i] + 4] end
    if #outcome > 1 then outcome, keeps = string.sub(outcome, 1, 1), true end
    -- A tick adds jobs, so it has to see what the others have done. Ticks are the last of the request.
    if outcome == 'n' then
      end_plan()
      begin_plan()
    end
    leave(ids[i], tokens[i], texts[ids[i]], parse_command(commands[k]), crash_texts[k], outcome, argument, new, nil, keeps)
  end
  end_plan()
end
if shut and #plain > 0 then
  -- include slot_free.lua
end
local sequence_number, rows = update_lease()
keep_notes()
do return {sequence_number, rows, stale, dropped, later} end

--[[ waiting: leaves the jobs of a batch out that would be more than may wait.

Needs    waiting, group_waiting: fields of meta; what `add` has; is_plain
Gives    bound.full(i): a job with the options in ARGV[i] comes to wait: what to answer if there is no room, or nil. bound.count(more): so many
         jobs more wait. bound.of_groups: how many may of its group, for each i. Of a plain batch: ARGV and groups without the jobs that are left
         out, and refused: the answer, or nil if there is room for all of them
Returns  the answer of the step if a plain batch has no other job
Holds    rule 29
Cost     ZCARD and HLEN
]]
local waits = redis.call('ZCARD', KEYS.delayed) + redis.call('HLEN', KEYS.far_jobs)
local function set_in(field) return tonumber(string.match(field or '', '^%d+:(%d+):') or '') end
local limits, set, set_of_groups = {}, set_in(waiting), set_in(group_waiting)
bound = {of_groups = {}}
for i = 6, 4 + 2 * groups, 2 do
  local options, by_code, of_group = string.match(ARGV[i], '^([^<]*)<?(%d*)/?(%d*)$')
  ARGV[i], limits[i], bound.of_groups[i] = options, set or tonumber(by_code), set_of_groups or tonumber(of_group)
end
if ARGV[1] ~= number then
  -- Follow-ups of one run come in whole where there is any room, and wait otherwise.
  for i = 6, 4 + 2 * groups, 2 do
    local is_full = limits[i] and waits >= limits[i] and string.sub(ARGV[i], 2, 2) ~= 'b'
    if is_full then return redis.error_reply('DQFULL ' .. int(waits) .. ' ' .. int(limits[i])) end
  end
  limits = {}
end
function bound.count(more) waits = waits + more end
function bound.full(i)
  if limits[i] and waits >= limits[i] then return 'T' .. int(waits) .. ',' .. int(limits[i]) .. ';' end
end
if is_plain then
  -- Each job is new. The groups and jobs that stay move to the front.
  local answers, kept, from, to = {}, 0, FIRST_JOB, FIRST_JOB
  for i = 6, 4 + 2 * groups, 2 do
    local count, fit = tonumber(ARGV[i + 1]), 0
    for _ = 1, count do
      local answer = bound.full(i)
      answers[#answers + 1] = answer or 'A'
      if not answer then
        ARGV[to], ARGV[to + 1], to, fit = ARGV[from], ARGV[from + 1], to + 2, fit + 1
        waits = waits + 1
      end
      from = from + 2
    end
    if fit > 0 then
      ARGV[6 + 2 * kept], ARGV[7 + 2 * kept], kept = ARGV[i], int(fit), kept + 1
    end
  end
  if to < from then
    groups, refused = kept, 'a' .. table.concat(answers)
    for at = from - 1, to, -1 do ARGV[at] = nil end
  end
  if kept == 0 then
    local answer = refused
    -- include keep.lua
    do return answer end
  end
end

--[[ waiting: leaves the jobs of a batch out that would be more than may wait.

Needs    waiting: the field of meta; what `add` has; is_plain
Gives    full(i, more): a job of the group whose options are in ARGV[i] comes to wait: what to answer if there is no room, or nil.
         count_waiting(more): so many jobs more wait. Of a plain batch: ARGV and groups without the jobs that are left out, and
         refused: the answer, or nil if there is room for all of them
Returns  the answer of the step if a plain batch has no other job
Holds    rule 29
Cost     ZCARD and HLEN
]]
local waits = redis.call('ZCARD', delayed) + redis.call('HLEN', far_jobs)
local set, limits = tonumber(string.match(waiting or '', '^%d+:(%d+):') or ''), {}
for i = 6, 4 + 2 * groups, 2 do
  local options, by_code = string.match(ARGV[i], '^([^<]*)<?(%d*)$')
  ARGV[i], limits[i] = options, set or tonumber(by_code)
end
if ARGV[1] ~= number then
  -- Follow-ups of one run come in whole where there is any room, and wait otherwise.
  for i = 6, 4 + 2 * groups, 2 do
    local is_full = limits[i] and waits >= limits[i] and string.sub(ARGV[i], 2, 2) ~= 'b'
    if is_full then return redis.error_reply('DQFULL ' .. int(waits) .. ' ' .. int(limits[i])) end
  end
  limits = {}
end
function count_waiting(more) waits = waits + more end
function full(i)
  if limits[i] and waits >= limits[i] then return 'T' .. int(waits) .. ',' .. int(limits[i]) .. ';' end
end
if is_plain then
  -- Each job is new. The groups and jobs that stay move to the front.
  local answers, kept, from, to = {}, 0, FIRST_JOB, FIRST_JOB
  for i = 6, 4 + 2 * groups, 2 do
    local count, fit = tonumber(ARGV[i + 1]), 0
    for _ = 1, count do
      local answer = full(i)
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

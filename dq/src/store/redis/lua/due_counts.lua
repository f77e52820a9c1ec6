--[[ due_counts: counts the DELAYED jobs that are due between each two times. Reads only.

KEYS[1]  {app:topic}:delayed     ZSET  job id -> due time, ms
KEYS[2]  {app:topic}:far         ZSET  bounds of the leaves of jobs that are due much later
KEYS[3]  {app:topic}:far-jobs    HASH  job id -> due time and record of such a job
KEYS[4]  {app:topic}:far-leaves  HASH  bound -> ids of the leaf, as a list of MessagePack
ARGV[1]  and on: the times in order, ms; 65 at most

Returns  {1 if the numbers are exact, {number from the first time on and before the second, ...}}
Holds    rule 5
Cost     O(log delayed) for each time. If there are far jobs: one command for each of up to 500 leaves, and two for one in which
         a time lies. With more leaves, one command for each time, and the number is that of the leaves by their average size
]]
-- include far.lua
local function int(n) return string.format('%d', n) end
-- include shifts.lua
local times, counts, exact = {}, {}, 1
for i, text in ipairs(ARGV) do times[i] = tonumber(text) end
for i = 1, #times - 1 do
  counts[i] = 0
  for _, shift in ipairs(shifts) do
    counts[i] = counts[i] + redis.call('ZCOUNT', KEYS.delayed, int(shift + times[i]), '(' .. int(shift + times[i + 1]))
  end
end
local function lex(time) return string.format('%015d', time) end
local function put(due, jobs)
  for i = 1, #counts do
    if times[i] <= due and due < times[i + 1] then counts[i] = counts[i] + jobs end
  end
end
local function is_split(from, to)
  for _, time in ipairs(times) do
    if from < time and time <= to then return true end
  end
end
local later = #counts > 0 and redis.call('HLEN', KEYS.far_jobs) or 0
if later > 0 then
  local first = leaf_of(times[1], '')
  local bounds = redis.call('ZRANGE', KEYS.far, first and '[' .. first or '-', '(' .. lex(times[#times]), 'BYLEX', 'LIMIT', 0, 501)
  if #bounds > 500 then
    exact = 0
    local each = later / redis.call('ZCARD', KEYS.far)
    for i = 1, #counts do
      local leaves = redis.call('ZLEXCOUNT', KEYS.far, '[' .. lex(times[i]), '(' .. lex(times[i + 1]))
      counts[i] = counts[i] + math.floor(leaves * each + 0.5)
    end
  else
    for i, bound in ipairs(bounds) do
      local base = base_of(bound)
      if is_split(base, bounds[i + 1] and base_of(bounds[i + 1]) or math.huge) then
        local ids = ids_in(leaf_at(bound))
        for _, value in ipairs(#ids > 0 and redis.call('HMGET', KEYS.far_jobs, unpack(ids)) or {}) do
          if value then put(due_in(value), 1) end
        end
      else
        put(base, size_of(leaf_at(bound)))
      end
    end
  end
end
return {exact, counts}

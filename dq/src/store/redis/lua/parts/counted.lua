--[[ counted: counts the jobs in each place.

Needs    jobs, delayed, unacked, dead, done, broadcasts, far, far_jobs; clock, far
Gives    counted: {clock ms, {delayed, ready, running, unacked, dead, done, broadcasts}, head ms or false}; by_shift: the ready jobs in `delayed`, for each of `shifts`
Cost     O(log delayed). While no node has brought near what is due, two commands for each leaf of such jobs, of 500 at most
]]
local function size(place) return redis.call('ZCARD', place) end
local head, ready, later = redis.call('ZRANGE', KEYS.delayed, 0, 0, 'WITHSCORES')[2], 0, redis.call('HLEN', KEYS.far_jobs)
local by_shift = {}
-- include shifts.lua
if shifts[2] then
  -- As for a full group, the head of these counts knows of no turn.
  local has_groups = false
  -- rare head.lua
end
head = tonumber(head or -1)
for n, shift in ipairs(shifts) do
  by_shift[n] = redis.call('ZCOUNT', KEYS.delayed, shift > 0 and int(shift) or '-inf', int(shift + floor))
  ready = ready + by_shift[n]
end
if later > 0 then
  -- The leaves that begin up to now, or else the first one.
  local bounds = redis.call('ZRANGE', KEYS.far, '-', string.format('(%015d', floor + 1), 'BYLEX', 'LIMIT', 0, 500)
  if #bounds == 0 then bounds = redis.call('ZRANGE', KEYS.far, 0, 0) end
  for i, bound in ipairs(bounds) do
    if 1 < i and i < #bounds then
      ready = ready + size_of(leaf_at(bound))
    else
      local ids = ids_in(leaf_at(bound))
      for _, value in ipairs(#ids > 0 and redis.call('HMGET', KEYS.far_jobs, unpack(ids)) or {}) do
        local due = value and due_in(value) or math.huge
        if due <= floor then ready = ready + 1 end
        if due < math.huge and (head < 0 or due < head) then head = due end
      end
    end
  end
end
local waiting, unacked, dead, done = size(KEYS.delayed) + later, size(KEYS.unacked), size(KEYS.dead), size(KEYS.done)
local running = math.max(redis.call('HLEN', KEYS.jobs) + later - waiting - unacked - dead - done, 0)
local counted = {floor, {waiting, ready, running, unacked, dead, done, size(KEYS.broadcasts)}, head >= 0 and head < math.huge and head}

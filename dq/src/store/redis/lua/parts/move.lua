--[[ move: moves the first leaves of the tree of jobs that are due much later into `delayed`, well before they are due.

Needs    jobs, delayed, far, far_jobs, far_leaves, meta; far_at: the due time in the first bound, as `meta` has it; NEAR: a leaf moves that long
         before it; FAR, which the loader writes; clock
Gives    far_at, as it is afterwards. It may still be due to move: the next transfer moves more
Holds    rules 1, 2, 5: nothing happens to the jobs; it reads each key before it writes it, and its first write is a removal. A leaf
         that has gone is noted in `meta`, for the audit (rule 2)
Cost     one ZRANGE; per leaf HGET, HMGET, ZREM, two HDEL, HSET, ZADD; at most 4 leaves of 67 jobs, whose records have at most 1 KiB
]]
do
  local moved, was_at = 0, far_at
  redis.call('HLEN', KEYS.jobs)
  redis.call('ZCARD', KEYS.delayed)
  -- include bulk.lua
  -- include far.lua
  -- include metadata.lua
  -- include score.lua
  -- include groups.lua
  -- include near.lua
  while true do
    local bound = redis.call('ZRANGE', KEYS.far, '0', '0')[1]
    far_at = bound and base_of(bound) or nil
    if not bound or far_at > floor + NEAR or moved == 4 then break end
    local ids = ids_in(leaf_at(bound))
    local values = #ids > 0 and redis.call('HMGET', KEYS.far_jobs, unpack(ids)) or {}
    redis.call('ZREM', KEYS.far, bound)
    redis.call('HDEL', KEYS.far_leaves, bound)
    write('HDEL', KEYS.far_jobs, ids)
    put_near(ids, values)
    if #ids == 0 then redis.call('HSET', KEYS.meta, 'far-lost', int((tonumber(redis.call('HGET', KEYS.meta, 'far-lost') or '') or 0) + 1)) end
    moved = moved + 1
  end
  if not far_at then
    redis.call('HDEL', KEYS.meta, 'far')
  elseif far_at ~= was_at then
    redis.call('HSET', KEYS.meta, 'far', int(far_at))
  end
end

--[[ far: jobs that are due much later wait in a tree of short lists, whose entries take 17 bytes where those of `delayed` take 110.

The record of such a job is in `far_jobs`, behind its due time (6 bytes). So the tree is only an index, and can be made again. A
*leaf* is a LIST of up to 128 ids, in no order. Its bound is a due time (15 digits) with an id behind it: the leaf has the jobs from
its bound up to that of the next leaf, by due time, then id. The ZSET `far` has all bounds; the key of a leaf is its bound behind the
name of `far` and a colon.

Needs    far
Gives    leaf_of(due, id): the bound of the leaf of this job, or nil before the first one. entries_of(bound): the key of the leaf.
         base_of(bound): the due time in it. due_in(value), record_in(value): of a value of far_jobs. leave_leaf(bound, id): takes an id out
         of its leaf, and an empty leaf out of the tree; bound may be nil
Cost     leaf_of: one ZRANGE, O(log leaves)
]]
local function leaf_of(due, id)
  return redis.call('ZRANGE', far, string.format('[%015d', due) .. id, '-', 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
end
local function entries_of(bound) return far .. ':' .. bound end
local function base_of(bound) return tonumber(string.sub(bound, 1, 15)) end
local function due_in(value) return (struct.unpack('<I6', value)) end
local function record_in(value) return string.sub(value, 7) end
local function leave_leaf(bound, id)
  local is_empty = bound and redis.call('LREM', entries_of(bound), 1, id) == 1 and redis.call('LLEN', entries_of(bound)) == 0
  if is_empty then redis.call('ZREM', far, bound) end
end

--[[ far: jobs that are due much later wait in a tree of short lists, whose entries take 17 bytes where those of `delayed` take 110.

The record of such a job is in `far_jobs`, behind its due time (6 bytes). So the tree is only an index, and can be made again. A
*leaf* has up to 67 ids, in no order: so many generated ones fill 1 KiB, with the header of the server. Its bound is a due time (15
digits) with an id behind it: the leaf has the jobs from its bound up to that of the next leaf, by due time, then id. The ZSET `far` has
all bounds. A field of `far_leaves` has the ids of a leaf, as a list of MessagePack whose head always has three bytes, so that ids are put
behind the others without reading those.

Needs    far, far_leaves
Gives    leaf_of(due, id): the bound of the leaf of this job, or nil before the first one. leaf_at(bound): a leaf, '' if there is none.
         size_of(leaf), ids_in(leaf): how many ids it has, and which. put_ids(bound, leaf, ids, from, to): a leaf gets these ids behind
         its own. base_of(bound): the due time in it. due_in(value), record_in(value): of a value of far_jobs. leave_leaf(bound, gone): takes
         the ids that are keys of `gone` out of their leaf, and an empty leaf out of the tree
Cost     leaf_of: one ZRANGE, O(log leaves). leave_leaf: HGET and HSET of the whole leaf
]]
local function leaf_of(due, id)
  return redis.call('ZRANGE', KEYS.far, string.format('[%015d', due) .. id, '-', 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
end
local function leaf_at(bound) return redis.call('HGET', KEYS.far_leaves, bound) or '' end
local function size_of(leaf) return string.byte(leaf, 3) or 0 end
local function ids_in(leaf)
  -- What another program has written counts as no leaf.
  local is_list, ids = pcall(cmsgpack.unpack, leaf)
  return is_list and type(ids) == 'table' and ids or {}
end
local function put_ids(bound, leaf, ids, from, to)
  local head = '\220\0' .. string.char(size_of(leaf) + to - from + 1)
  redis.call('HSET', KEYS.far_leaves, bound, head .. string.sub(leaf, 4) .. cmsgpack.pack(unpack(ids, from, to)))
end
-- What another program wrote is due, so that it leaves the tree.
local function base_of(bound) return tonumber(string.match(bound, '^' .. string.rep('%d', 15))) or 0 end
local function due_in(value) return #value >= 6 and struct.unpack('<I6', value) or 0 end
local function record_in(value) return string.sub(value, 7) end
local function leave_leaf(bound, gone)
  local ids, left = ids_in(leaf_at(bound)), {}
  for _, id in ipairs(ids) do
    if not gone[id] then left[#left + 1] = id end
  end
  if #left == #ids then return end
  if left[1] then
    put_ids(bound, '', left, 1, #left)
  else
    redis.call('HDEL', KEYS.far_leaves, bound)
    redis.call('ZREM', KEYS.far, bound)
  end
end

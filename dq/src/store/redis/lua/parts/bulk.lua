--[[ bulk: variadic calls in chunks, because Lua unpacks a few thousand values at most.

Gives    push(list, a, b): appends one value or two. write(command, key, list): runs the command for the whole list, 1000 values per call, never for an empty list;
         pairs stay together. read(command, key, list): the same for a command that answers one value per item of the
         list. fitting(keys, ids, most): how many of these fields, from the first on, have together at most that many bytes
         in these hashes; at least one, so that a large one never blocks
Cost     one command per 1000 values; fitting: one HSTRLEN per key and field, which copies nothing
]]
local function push(list, a, b)
  list[#list + 1] = a
  if b then list[#list + 1] = b end
end
local function write(command, key, list)
  for i = 1, #list, 1000 do redis.call(command, key, unpack(list, i, math.min(i + 999, #list))) end
end
local function read(command, key, list)
  if #list == 0 then return {} end
  if #list <= 1000 then return redis.call(command, key, unpack(list)) end
  local values = {}
  for i = 1, #list, 1000 do
    local last = math.min(i + 999, #list)
    local chunk = redis.call(command, key, unpack(list, i, last))
    for j = 1, last - i + 1 do values[i + j - 1] = chunk[j] end
  end
  return values
end
local function fitting(keys, ids, most)
  local bytes = 0
  for i = 1, #ids do
    for _, key in ipairs(keys) do bytes = bytes + redis.call('HSTRLEN', key, ids[i]) end
    if bytes > most and i > 1 then return i - 1 end
  end
  return #ids
end

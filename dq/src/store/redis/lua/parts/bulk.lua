--[[ bulk: variadic calls in chunks, because Lua unpacks some thousand values at most.

Gives    write(command, key, list): the command for the whole list, at most 1000 values a call, none for an empty list;
         pairs stay together. read(command, key, list): the same for commands that answer a value for each
Cost     one command for 1000 values
]]
local function write(command, key, list)
  for i = 1, #list, 1000 do redis.call(command, key, unpack(list, i, math.min(i + 999, #list))) end
end
local function read(command, key, list)
  if #list == 0 then return {} end
  if #list <= 1000 then return redis.call(command, key, unpack(list)) end
  local all = {}
  for i = 1, #list, 1000 do
    local last = math.min(i + 999, #list)
    local part = redis.call(command, key, unpack(list, i, last))
    for j = 1, last - i + 1 do all[i + j - 1] = part[j] end
  end
  return all
end

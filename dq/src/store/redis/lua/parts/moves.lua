--[[ moves: notes what a step does to jobs, and tells it to those who listen to the events of the topic (rule 31). A step in which
nobody listens includes this part only where it makes functions anyway.

Needs    meta; events: field of meta; clock
Gives    note_move(kind, number, name, id): kind is a letter of `moves.rs`, with a cause, a place or a command behind it; number is a
         time in ms or ''; name is a node, a producer or ''. tell_moves(): tells them in one message, at the end of the step
Cost     no command while nobody listens, otherwise one PUBLISH. It has at most 1,000 moves and 64 KiB, and says how many had no room.
         A server that refuses PUBLISH does no harm
]]
local is_listened = events and (tonumber(events) or 0) > floor
local move_lines, move_bytes, more_moves = {}, 0, 0
local function note_move(kind, number, name, id)
  if not is_listened then return end
  local line = kind .. '\t' .. number .. '\t' .. name .. '\t' .. id
  if #move_lines == 1000 or move_bytes + #line >= 65000 then
    more_moves = more_moves + 1
  else
    move_bytes, move_lines[#move_lines + 1] = move_bytes + #line + 1, line
  end
end
local function tell_moves()
  if #move_lines == 0 then return end
  local head = string.format('%d\t%d\n', floor, more_moves)
  redis.pcall('PUBLISH', string.sub(meta, 1, -5) .. 'events', head .. table.concat(move_lines, '\n'))
end

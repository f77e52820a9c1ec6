--[[ moves: notes what a step does to jobs, and tells it to those who listen to the events of the topic (rule 31) and to the histories
of the jobs (rule 32). A step in which nobody wants to know includes this part only where it makes functions anyway.

Needs    meta; events, history: fields of meta; clock
Gives    wants_moves: whether anybody wants to know. note_move(kind, number, name, id): kind is a letter of `moves/text.rs`, with a
         cause, a place or a command behind it; number is a time in ms or ''; name is a node, a producer, a caller or ''. tell_moves():
         tells them in one message, at the end of the step, and adds them to the histories
Cost     no command while nobody wants to know. While somebody listens one PUBLISH, which has at most 1,000 moves and 64 KiB, and
         says how many had no room. Where the topic keeps histories, what the part `history` says. A server that refuses one of these commands
         does no harm
]]
local is_listened = events and (tonumber(events) or 0) > floor
local wants_moves = is_listened or history
local move_lines, move_bytes, more_moves, kept_moves = {}, 0, 0, {}
local function note_move(kind, number, name, id)
  if not wants_moves then return end
  if history then
    kept_moves[#kept_moves + 1] = id
    kept_moves[#kept_moves + 1] = string.format('%s\t%d\t%s\t%s\n', kind, floor, number, name)
  end
  if not is_listened then return end
  local line = kind .. '\t' .. number .. '\t' .. name .. '\t' .. id
  if #move_lines == 1000 or move_bytes + #line >= 65000 then
    more_moves = more_moves + 1
  else
    move_bytes, move_lines[#move_lines + 1] = move_bytes + #line + 1, line
  end
end
local function tell_moves()
  if #kept_moves > 0 then
    -- include history.lua
  end
  if #move_lines == 0 then return end
  local head = string.format('%d\t%d\n', floor, more_moves)
  redis.pcall('PUBLISH', string.sub(meta, 1, -5) .. 'events', head .. table.concat(move_lines, '\n'))
end

--[[ plain_acks: removes a batch of acked jobs that leave nothing behind. It is the path of nearly every job, so it makes no
function, and takes the ids straight from ARGV.

Needs    jobs, running, leases, pending, crashes, metadata; call, acks, stored, retains, events, history, last_seen; others: where in ARGV the
         other outcomes begin
Gives    rare: how many of the keys of rare state exist; has_pending; is_plain: there are only acks, no job has a retention
         and no pending command waits. Then the acks are settled, and also held: how many rows are left, and stale: positions
         of stale acks
Holds    rules 1, 3, 8, 10: it reads each key before its first write, but `jobs`, which it writes first
Cost     six commands for any number of acks, and one more for their last row
]]
local rare = call('EXISTS', pending, crashes, metadata)
local has_pending = rare > 0 and call('EXISTS', pending) == 1
local is_plain, held, stale = acks > 0 and others > #ARGV and not has_pending and not retains, nil, {}
if is_plain then
  local tokens, from = call('HMGET', running, unpack(ARGV, 7, 6 + acks)), 0
  for group = 7 + acks, others - 1, 2 do
    local token, to = ARGV[group], from + ARGV[group + 1]
    for i = from + 1, to do
      if tokens[i] ~= token then stale[#stale + 1] = i end
    end
    from = to
  end
  held = call('HLEN', running)
  call('ZCARD', leases)
  if rare > 0 then
    call('HLEN', crashes)
    call('HLEN', metadata)
  end
  local ids, first, last = ARGV, 7, 6 + acks
  if #stale > 0 then
    local next_stale = 1
    ids, first, last = {}, 1, acks - #stale
    for i = 1, acks do
      if stale[next_stale] == i then next_stale = next_stale + 1 else ids[#ids + 1] = ARGV[6 + i] end
    end
  end
  if first > last then
    call('HDEL', running, '')
  else
    call('HDEL', jobs, unpack(ids, first, last))
    held = held - call('HDEL', running, unpack(ids, first, last))
    if events or history then
      -- include clock.lua
      if history or (tonumber(events) or 0) > floor then
        -- include moves.lua
        for i = first, last do note_move('k', '', node, ids[i]) end
        tell_moves()
      else
        -- Nobody listens any more, and the next settle need not look at the clock.
        call('HDEL', meta, 'events')
      end
    end
    if rare > 0 then
      call('HDEL', crashes, unpack(ids, first, last))
      call('HDEL', metadata, unpack(ids, first, last))
    end
  end
  if held == 0 then call('ZREM', leases, node) end
end

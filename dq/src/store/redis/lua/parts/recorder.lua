--[[ recorder: the one record of what a step does to jobs. Events, histories and statistics (rule 31) read it at the end of the
step, and nothing else writes them. Job sets learn from it that members have ended (rule 18).

A history is text, a line for each move: its letter, the clock, and what `note` got. A minute of the statistics has the slot
`minute mod 1440`, and takes it from the minute of the day before. Its value is SHAPE: the minute; how many jobs were claimed; how many
runs ended, how many of them with an ack, and how many failed; how many jobs became DEAD; how late the claimed jobs were in sum and at
most, ms; and how many were late up to each time in LATE, and later. `store/statistics.rs` reads it.

Needs    meta; jobs, done, broadcasts, if jobs may end; events, history_setting: fields of meta (until when somebody listens, ms; `moves:after`,
         how many moves of a job are kept, and for how long after its end, ms); history, history_ends, if the topic keeps histories;
         statistics: their key, or nil; members, outbox, while jobs are members of job sets; note, keep_notes and
         tells_moves, locals that it gives their values; before that tells_moves is the field `members` of meta; clock
Gives    tells_moves: whether events or histories want to know. note(kind, number, name, ids, from, to): something happened to the job
         `ids`, or to those of the list `ids` from `from` to `to`. kind is a letter of `moves/text.rs` with a cause, a state or a command
         behind it, or `e` and an outcome: a run ended, which is no move; number is a time in ms or ''; name is a node, a producer, a caller
         or ''. keep_notes(): lets all read the record, at the end of the step
Holds    rules 1, 31: it reads the minute before the first write of the step. What a server refuses of events and histories, or a key
         of theirs that has a wrong type, keeps no step from its jobs
Cost     no command while nobody wants to know, but one HDEL once nobody listens any more. Events: one PUBLISH, which has at most 1,000 moves
         and 64 KiB, and says how many had no room. Statistics: one HGET, and one HSET if the step counted anything; EXPIRE with the first step of
         a minute. Histories: for each 250 jobs HMGET and HSET, 1 MiB each at most; ZREM if some were added; of jobs that have ended ZMSCORE
         twice and HDEL, or where they are kept ZADD and ZCARD, and what is over 100,000 is forgotten: ZRANGE, HDEL, ZREM
]]
do
  -- A key of a wrong type is found before the first write.
  local has_members = tells_moves and redis.call('HLEN', KEYS.members) > 0
  if has_members then redis.call('ZCARD', KEYS.outbox) end
  local is_listened, made = events and (tonumber(events) or 0) > floor, {}
  local minute = math.floor(floor / 60000)
  tells_moves = is_listened or history_setting
  local in_slot = KEYS.statistics and redis.call('HGET', KEYS.statistics, int(minute % 1440))
  function note(kind, number, name, ids, from, to)
    if not (tells_moves or has_members or KEYS.statistics and string.find(kind, '^[cex]')) then return end
    if not from then ids, from, to = {ids}, 1, 1 end
    made[#made + 1] = {letter = string.sub(kind, 1, 1), kind = kind, number = number, name = name, ids = ids, from = from, to = to}
  end
  function keep_notes()
    -- Nobody listens any more, and the next steps need not look.
    if events and not is_listened then redis.call('HDEL', KEYS.meta, 'events') end
    if #made == 0 then return end
    if KEYS.statistics then
      local SHAPE, SHAPE_BYTES, LATE = '<I4I4I4I4I4I4I8I6I4I4I4I4I4I4I4I4', 70, {10, 100, 1000, 10000, 60000, 600000, 3600000}
      local MAX_LATE, MAX_SUM = 281474976710655, 9007199254740991
      local counts, has_counted = in_slot and #in_slot == SHAPE_BYTES and {struct.unpack(SHAPE, in_slot)}, false
      local is_new = not counts or counts[1] ~= minute
      if is_new then counts = {minute, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} end
      local function count(at, jobs) counts[at], has_counted = counts[at] + jobs, has_counted or jobs > 0 end
      for _, one in ipairs(made) do
        local jobs = one.to - one.from + 1
        if one.letter == 'c' then
          local late, at = math.max(floor - one.number, 0), 9
          while at < 16 and late > LATE[at - 8] do at = at + 1 end
          count(2, jobs)
          count(at, jobs)
          counts[7], counts[8] = math.min(counts[7] + late * jobs, MAX_SUM), math.min(math.max(counts[8], late), MAX_LATE)
        elseif one.letter == 'e' then
          count(3, jobs)
          if one.kind == 'ea' then count(4, jobs) elseif one.kind == 'er' or one.kind == 'ex' then count(5, jobs) end
        elseif one.letter == 'x' then
          count(6, jobs)
        end
      end
      if has_counted then redis.call('HSET', KEYS.statistics, int(minute % 1440), struct.pack(SHAPE, unpack(counts, 1, 16))) end
      if has_counted and is_new then redis.call('EXPIRE', KEYS.statistics, 90000) end
    end
    local function for_each_move(visit)
      for _, one in ipairs(made) do
        for i = one.from, one.letter ~= 'e' and one.to or 0 do visit(one, one.ids[i]) end
      end
    end
    if has_members then
      -- include tell_sets.lua
    end
    if not tells_moves then return end
    local MAX_BYTES, MAX_ENDED, AT_ONCE = 4096, 100000, 250
    local function tell_events()
      local lines, bytes, more = {}, 0, 0
      for_each_move(function(one, id)
        local line = one.kind .. '\t' .. one.number .. '\t' .. one.name .. '\t' .. id
        if #lines == 1000 or bytes + #line >= 65000 then
          more = more + 1
        else
          bytes, lines[#lines + 1] = bytes + #line + 1, line
        end
      end)
      if #lines == 0 then return end
      redis.pcall('PUBLISH', string.sub(KEYS.meta, 1, -5) .. 'events', string.format('%d\t%d\n', floor, more) .. table.concat(lines, '\n'))
    end
    local function ask(...)
      local answer = redis.pcall(...)
      return type(answer) == 'table' and answer.err and {} or answer
    end
    -- Which of these jobs are gone. The last move of a job says whether it can be: acked, deleted, removed, dropped, or published.
    local function gone_among(ids, last)
      local candidates, gone, count = {}, {}, 0
      for _, id in ipairs(ids) do
        if string.find('kdgzo', last[id], 1, true) then candidates[#candidates + 1] = id end
      end
      if #candidates == 0 then return gone, 0 end
      local done_at = ask('ZMSCORE', KEYS.done, unpack(candidates))
      local due_at = ask('ZMSCORE', KEYS.broadcasts, unpack(candidates))
      for i, id in ipairs(candidates) do
        local is_there = done_at[i] or due_at[i] or last[id] == 'o' and ask('HEXISTS', KEYS.jobs, id) == 1
        if not is_there then gone[id], count = true, count + 1 end
      end
      return gone, count
    end
    -- The newest moves of a history that there is room for, and the last one in any case.
    local function newest(text, most)
      local _, count = string.gsub(text, '\n', '')
      local from = 1
      while count > 1 and (count > most or #text - from + 1 > MAX_BYTES) do
        from, count = string.find(text, '\n', from, true) + 1, count - 1
      end
      return from > 1 and string.sub(text, from) or text
    end
    local function forget_histories(ids)
      if #ids == 0 then return end
      ask('HDEL', KEYS.history, unpack(ids))
      ask('ZREM', KEYS.history_ends, unpack(ids))
    end
    -- The history of a job that is gone now is kept for a time, or goes too.
    local function keep_histories()
      local most, after_end = string.match(history_setting, '^(%d+):(%d+)$')
      most, after_end = tonumber(most or 0), tonumber(after_end or 0)
      local lines, ids, last, comes_back = {}, {}, {}, {}
      for_each_move(function(one, id)
        if not lines[id] then lines[id], ids[#ids + 1] = '', id end
        lines[id] = lines[id] .. string.format('%s\t%d\t%s\t%s\n', one.kind, floor, one.number, one.name)
        last[id], comes_back[id] = one.letter, comes_back[id] or one.letter == 'a' or one.letter == 'i'
      end)
      for first = 1, #ids, AT_ONCE do
        local some = {unpack(ids, first, math.min(first + AT_ONCE - 1, #ids))}
        local gone, gone_count = gone_among(some, last)
        local kept, removed, back, fields, members = {}, {}, {}, {}, {}
        for _, id in ipairs(some) do
          if gone[id] and after_end == 0 then removed[#removed + 1] = id else kept[#kept + 1] = id end
          if not gone[id] and comes_back[id] then back[#back + 1] = id end
          if gone[id] then members[#members + 1], members[#members + 2] = int(floor + after_end), id end
        end
        forget_histories(removed)
        if #back > 0 then ask('ZREM', KEYS.history_ends, unpack(back)) end
        local old = #kept > 0 and ask('HMGET', KEYS.history, unpack(kept)) or {}
        for i, id in ipairs(kept) do fields[2 * i - 1], fields[2 * i] = id, newest((old[i] or '') .. lines[id], most) end
        if #kept > 0 then ask('HSET', KEYS.history, unpack(fields)) end
        if after_end > 0 and gone_count > 0 then
          ask('ZADD', KEYS.history_ends, unpack(members))
          local over = (tonumber(ask('ZCARD', KEYS.history_ends)) or 0) - MAX_ENDED
          if over > 0 then forget_histories(ask('ZRANGE', KEYS.history_ends, '0', int(math.min(over, 1000) - 1))) end
        end
      end
    end
    if history_setting then keep_histories() end
    if is_listened then tell_events() end
  end
end

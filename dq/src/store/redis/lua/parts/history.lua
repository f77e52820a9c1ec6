--[[ history: adds the moves of a step to the histories of its jobs (rule 32). The history of a job that is gone now is kept for a
time, or goes too. A history is text, a line for each move: its letter, the clock, and what `note_move` got.

Needs    meta; history: field of meta, `moves:after`, how many moves of a job are kept, and for how long after its end, ms; kept_moves:
         id and line of each move; clock
Cost     for each 250 jobs HMGET and HSET, 1 MiB each at most; ZREM if some were added; of jobs that have ended ZMSCORE twice and HDEL, or
         where they are kept ZADD and ZCARD, and what is over 100,000 is forgotten: ZRANGE, HDEL, ZREM. It uses keys that are not in KEYS and
         have the same hash tag, so that a step without histories names no key more. None of its commands can end the script
]]
local MOST_BYTES, MOST_ENDED, AT_ONCE = 4096, 100000, 250
local most, after_end = string.match(history, '^(%d+):(%d+)$')
most, after_end = tonumber(most or 0), tonumber(after_end or 0)
local prefix = string.sub(meta, 1, -5)
local histories, ends = prefix .. 'history', prefix .. 'history-ends'
-- What a server refuses, or a key of a wrong type, keeps no step from its jobs.
local function ask(...)
  local answer = redis.pcall(...)
  return type(answer) == 'table' and answer.err and {} or answer
end
-- The last move of a job says whether it can be gone: acked, deleted, removed, dropped, or published.
local lines, ids, last, comes_back = {}, {}, {}, {}
for i = 1, #kept_moves, 2 do
  local id, line = kept_moves[i], kept_moves[i + 1]
  if not lines[id] then lines[id], ids[#ids + 1] = '', id end
  lines[id], last[id] = lines[id] .. line, string.sub(line, 1, 1)
  if string.find(line, '^[ai]') then comes_back[id] = true end
end
local function gone_among(some)
  local candidates, gone = {}, {}
  for _, id in ipairs(some) do
    if string.find(last[id], '[kdgzo]') then candidates[#candidates + 1] = id end
  end
  if #candidates == 0 then return gone, 0 end
  local done_at = ask('ZMSCORE', prefix .. 'done', unpack(candidates))
  local due_at = ask('ZMSCORE', prefix .. 'broadcasts', unpack(candidates))
  local count = 0
  for i, id in ipairs(candidates) do
    local is_there = done_at[i] or due_at[i] or last[id] == 'o' and ask('HEXISTS', prefix .. 'jobs', id) == 1
    if not is_there then gone[id], count = true, count + 1 end
  end
  return gone, count
end
-- The newest moves of a history that there is room for, and the last one in any case.
local function newest(text)
  local _, count = string.gsub(text, '\n', '')
  local from = 1
  while count > 1 and (count > most or #text - from + 1 > MOST_BYTES) do
    from, count = string.find(text, '\n', from, true) + 1, count - 1
  end
  return from > 1 and string.sub(text, from) or text
end
for first = 1, #ids, AT_ONCE do
  local some = {unpack(ids, first, math.min(first + AT_ONCE - 1, #ids))}
  local gone, gone_count = gone_among(some)
  local kept, removed, back, fields, members = {}, {}, {}, {}, {}
  for _, id in ipairs(some) do
    if gone[id] and after_end == 0 then removed[#removed + 1] = id else kept[#kept + 1] = id end
    if not gone[id] and comes_back[id] then back[#back + 1] = id end
    if gone[id] then members[#members + 1], members[#members + 2] = string.format('%d', floor + after_end), id end
  end
  if #removed > 0 then ask('HDEL', histories, unpack(removed)) end
  if #back > 0 then ask('ZREM', ends, unpack(back)) end
  if #kept > 0 then
    local old = ask('HMGET', histories, unpack(kept))
    for i, id in ipairs(kept) do
      fields[#fields + 1] = id
      fields[#fields + 1] = newest((old[i] or '') .. lines[id])
    end
    ask('HSET', histories, unpack(fields))
  end
  if after_end > 0 and gone_count > 0 then
    ask('ZADD', ends, unpack(members))
    local over = tonumber(ask('ZCARD', ends)) or 0
    if over > MOST_ENDED then
      local oldest = ask('ZRANGE', ends, '0', string.format('%d', math.min(over - MOST_ENDED, 1000) - 1))
      if #oldest > 0 then
        ask('HDEL', histories, unpack(oldest))
        ask('ZREM', ends, unpack(oldest))
      end
    end
  elseif #removed > 0 then
    ask('ZREM', ends, unpack(removed))
  end
end

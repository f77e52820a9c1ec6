--[[ extend: gives a job that waits, or the replacement that waits for the end of a run, the payload of a new job and another due time.

Needs    broadcasts, broadcast_jobs, replacements; states, dues and texts of the jobs, commands, broadcast_dues; longest,
         earliest, and the lists of `add` for what is written; clock, metadata, edit, pending
Gives    extend(id, options, record): the answer, or nil if no replacement waits. extended_due: that of the last one. extended: ids whose metadata are those of their records
Holds    rules 5, 13, 28: it reads up to 1 MiB of broadcasts and replacements, or one larger one
]]
local extended, extended_due, extend = {}, nil, nil
do
  local read_bytes = 0
  local function read_old(key, id)
    local size, is_first = redis.call('HSTRLEN', key, id), read_bytes == 0
    read_bytes = read_bytes + size
    return (is_first or read_bytes <= MAX_READ) and redis.call('HGET', key, id) or nil
  end
  -- The new due time, and when the job was first added.
  local function due_of(options, first)
    if first == 0 then first = floor end
    return options.most and math.max(math.min(options.due, first + options.most), floor) or options.due, first
  end
  local function extend_replacement(id, options, payload)
    local command = commands[id]
    if not (command and command.deliver) then return nil end
    local old = read_old(KEYS.replacements, id)
    if not old then return 'L' end
    local text = metadata_in(old)
    local version, first = change_facts(text)
    if version == LAST_VERSION then return 'M' end
    local due
    due, first = due_of(options, first)
    extended_due = due
    local new = edited(text, version + 1, first, due - command.due) .. payload
    longest = math.max(longest, #new)
    command.conditional, command.due = false, due
    push(pending_fields, id, command_text(command))
    push(replacement_fields, id, new)
    return 'E' .. told(version + 1, due)
  end
  function extend(id, options, record)
    local payload = payload_of(record, metadata_in(record))
    if states[id] == 'r' then return extend_replacement(id, options, payload) end
    local old = broadcast_dues[id] and read_old(KEYS.broadcast_jobs, id)
    if broadcast_dues[id] and not old then return 'L' end
    local text, broadcast_text = states[id] == 'd' and texts[id], old and metadata_in(old)
    local version, first = change_facts(text or broadcast_text)
    if version == LAST_VERSION then return 'M' end
    local due
    due, first = due_of(options, first)
    extended_due = due
    if text then
      if has_groups and not seating.has_seat(id, text) then
        seating.leave(id, text, dues[id])
        seating.join(id, text, due)
      end
      local new = edited(text, version + 1, first, due - dues[id]) .. payload
      push(delayed_members, score(due, new), id)
      push(job_fields, id, new)
      extended[#extended + 1] = id
      longest = math.max(longest, #new)
      if due < earliest then earliest = due end
    end
    if broadcast_text then
      local new = edited(broadcast_text, version + 1, first, due - tonumber(broadcast_dues[id])) .. payload
      longest = math.max(longest, #new)
      push(broadcast_members, int(due), id)
      push(broadcast_fields, id, new)
      if due < earliest_broadcast then earliest_broadcast = due end
    end
    return 'E' .. told(version + 1, due)
  end
end

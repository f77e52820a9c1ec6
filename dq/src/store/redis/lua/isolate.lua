--[[ isolate: notes how quarantined jobs are about to run, or only reads under which ends runs are. They stay RUNNING. Renews.

KEYS[1]  {app:topic}:running:NODE   HASH    job id -> token
KEYS[2]  {app:topic}:leases         ZSET    node -> end of its lease, ms
KEYS[3]  {app:topic}:sequence:NODE  STRING  sequence number of the node
KEYS[4]  {app:topic}:pending        HASH    job id -> pending command
KEYS[5]  {app:topic}:crashes        HASH    job id -> crashes, with `+` (grouped) or `!` (alone) behind the number
ARGV[1]  node
ARGV[2]  last_seen: the last seen sequence number
ARGV[3]  lease, ms
ARGV[4]  isolation: + (grouped), ! (alone), or nothing: notes nothing
ARGV[5..] id, token of each run, at most 1000 of them

Returns  {{sequence number, rows}, {a letter for each run}}: d (done), s (stale: the row has another token or is gone), e (ended: the job is under
         an unfenced end) or, only if nothing is noted, c (that end is a cancel). Under another sequence number nothing is noted, and false stands for the letters
Holds    rules 6, 8, 10, 13, 19
Cost     O(runs + log nodes)
]]
-- include types.lua
local node, last_seen, lease, isolation = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- include clock.lua
-- include bulk.lua
-- include pending.lua
-- include lease.lua
local ids, tokens, notes, written = {}, {}, {}, {}
for i = 5, #ARGV, 2 do
  ids[#ids + 1], tokens[#tokens + 1] = ARGV[i], ARGV[i + 1]
end
local is_current = redis.call('GET', KEYS.sequence) == last_seen
if is_current then
  local rows, commands, counts = read('HMGET', KEYS.running, ids), read('HMGET', KEYS.pending, ids), read('HMGET', KEYS.crashes, ids)
  for i, id in ipairs(ids) do
    notes[i] = 's'
    if rows[i] == tokens[i] then
      local command = parse_command(commands[i])
      notes[i] = is_unfenced_end(command) and (isolation == '' and command.ending == 'c' and 'c' or 'e') or 'd'
    end
    if notes[i] == 'd' and isolation ~= '' then
      local count = parse_crashes(counts[i])
      written[#written + 1] = id
      written[#written + 1] = crashes_text(count, isolation) .. (string.match(counts[i] or '', ' .*$') or '')
    end
  end
end
redis.call('HDEL', KEYS.running, '')
write('HSET', KEYS.crashes, written)
return {{update_lease()}, is_current and notes}

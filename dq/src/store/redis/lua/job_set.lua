--[[ job_set: changes a job set: registers members and writes their adds into the outbox, closes it, or notes that members have ended. When the last
member of a closed set has ended, its last job goes into the outbox, and the set is kept for a time as one that has ended.

KEYS[1]  {app:topic}:calls:PRODUCER  STRING   the highest executed number, and answers of the last batches
KEYS[2]  {app:topic}:meta            HASH     protocol, outbox
KEYS[3]  {app:topic}:wake            CHANNEL  signals for every node
KEYS[4]  {app:topic}:sets            HASH     name -> state, members, acked, dead, left, since, cancels, with commas; name, NUL -> its last job
KEYS[5]  {app:topic}:set-order       ZSET     name -> 0, or once the set has ended when, ms
KEYS[6]  {app:topic}:outbox          ZSET     follow-ups that have not arrived, all with score 0
KEYS[7]  {app:topic}:set:NAME        ZSET     topic, NUL, id of each member -> 0, 1: its delete is on its way, or 2: it has ended
ARGV[1]  number of the batch, or as the part `calls` has it for an entry of an outbox
ARGV[2]  a (add), c (close) or e (members have ended)
ARGV[3]  name of the set
ARGV[4]  name of the topic
ARGV[5]  the most members
ARGV[6]  the most sets that have not ended
ARGV[7]  for how long a set that has ended is kept, ms
ARGV[8]  how many members it cancels at most
ARGV[9]  of a what a member does that becomes DEAD, the number of a variant of `OnDead`; of c the last job; of e the topic of the members
ARGV[10] and on: of a topic, id and packed job of each member; of e id and end of each member, a letter of `MemberEnd`

Returns  {'done', answer}, {'kept', answer} or {'late'}. The answer is `j`, D (done), or C (closed), E (ended), M (too many members), S (too many
         sets) or U (what KEYS[4] has cannot be read), and the set as in KEYS[4]
Holds    rules 1, 18: no step touches the topic of a member
Cost     O(members of the batch log members of the set), and UNLINK once when the set ends
]]
-- include types.lua
local number, verb, name, home, renews = ARGV[1], ARGV[2], ARGV[3], ARGV[4], true
-- include version.lua
-- include clock.lua
-- include calls.lua
local NUL, is_relayed, has_posted = string.char(0), ARGV[1] ~= number, false
local kept_until = int(math.max(floor - ARGV[7], 0))
local row = redis.call('HGET', KEYS.sets, name)
local has_ended = row and string.sub(row, 1, 1) == 'e'
if has_ended and tonumber(redis.call('ZSCORE', KEYS.set_order, name) or 0) <= tonumber(kept_until) then row, has_ended = nil, false end
local state, members, acked, dead, left, since, cancels = string.match(row or 'o,0,0,0,0,' .. int(floor) .. ',0', '^(%a),(%d+),(%d+),(%d+),(%d+),(%d+),(%d)$')
-- What another program wrote is no set, and Lua calculates exactly up to 2^53 only.
if state and math.max(members, acked, dead, left, since) > 9007199254740992 then state = nil end
local new, refusal = {}, nil
if not state then
  row, refusal = nil, 'U'
elseif verb ~= 'e' and not row and redis.call('ZCOUNT', KEYS.set_order, 0, 0) >= tonumber(ARGV[6]) then
  refusal = 'S'
elseif verb == 'a' and state == 'e' then
  refusal = 'E'
elseif verb == 'a' and state == 'c' and not is_relayed then
  refusal = 'C'
elseif verb == 'a' then
  local ids, known = {}, {}
  for i = 10, #ARGV, 3 do ids[#ids + 1] = ARGV[i] .. NUL .. ARGV[i + 1] end
  local scores = #ids > 0 and redis.call('ZMSCORE', KEYS.set, unpack(ids)) or {}
  for n, member in ipairs(ids) do
    if not scores[n] and not known[member] then
      known[member], new[#new + 1] = true, {member = member, topic = ARGV[7 + 3 * n], job = ARGV[9 + 3 * n]}
    end
  end
  if members + #new > tonumber(ARGV[5]) then refusal = 'M' end
end
-- A server whose memory is full must take what ends members, and that begins with a removal.
if verb == 'e' then redis.call('HDEL', KEYS.sets, '') end
for _, old in ipairs(redis.call('ZRANGE', KEYS.set_order, '(0', kept_until, 'BYSCORE', 'LIMIT', 0, 10)) do
  redis.call('HDEL', KEYS.sets, old)
  redis.call('ZREM', KEYS.set_order, old)
end
if not refusal and not has_ended and (row or verb ~= 'e') then
  if not protocol then redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL) end
  -- include postcard.lua
  local function post(target, batch)
    -- include post.lua
    has_posted = true
  end
  -- Writes these for each topic, behind what the batch of a topic begins with.
  local function post_by_topic(list, head)
    local by_topic, topics = {}, {}
    for _, one in ipairs(list) do
      if not by_topic[one.topic] then
        by_topic[one.topic] = {}
        topics[#topics + 1] = one.topic
      end
      table.insert(by_topic[one.topic], one.job)
    end
    for _, topic in ipairs(topics) do post(topic, head .. varint(#by_topic[topic]) .. table.concat(by_topic[topic])) end
  end
  local counts = {a = acked + 0, x = dead + 0, l = left + 0}
  if verb == 'a' then
    local scores = {}
    for n, one in ipairs(new) do scores[2 * n - 1], scores[2 * n] = 0, one.member end
    if #new > 0 then redis.call('ZADD', KEYS.set, unpack(scores)) end
    members = members + #new
    post_by_topic(new, '\0\3' .. text(home) .. text(name) .. ARGV[9])
  elseif verb == 'c' and state == 'o' then
    state = 'c'
    redis.call('HSET', KEYS.sets, name .. NUL, ARGV[9])
  elseif verb == 'e' then
    local ids, scores, seen = {}, {}, {}
    for i = 10, #ARGV, 2 do ids[#ids + 1] = ARGV[9] .. NUL .. ARGV[i] end
    local before = redis.call('ZMSCORE', KEYS.set, unpack(ids))
    for n, member in ipairs(ids) do
      if before[n] and tonumber(before[n]) < 2 and not seen[member] then
        local letter = ARGV[9 + 2 * n]
        if letter == 'r' then letter, cancels = 'x', 1 end
        seen[member], counts[letter] = true, counts[letter] + 1
        scores[#scores + 1], scores[#scores + 2] = 2, member
      end
    end
    if #scores > 0 then redis.call('ZADD', KEYS.set, unpack(scores)) end
  end
  if tonumber(cancels) == 1 then
    local rest, scores = {}, {}
    for n, member in ipairs(redis.call('ZRANGE', KEYS.set, 0, 0, 'BYSCORE', 'LIMIT', 0, ARGV[8])) do
      -- What another program wrote is no member.
      local topic, id = string.match(member, '^([A-Za-z0-9._:-]+)%z(.+)$')
      if topic then rest[#rest + 1] = {topic = topic, job = text(id)} end
      scores[2 * n - 1], scores[2 * n] = 1, member
    end
    if #scores > 0 then redis.call('ZADD', KEYS.set, unpack(scores)) end
    post_by_topic(rest, '\0\1')
  end
  acked, dead, left = counts.a, counts.x, counts.l
  if state == 'c' and acked + dead + left >= tonumber(members) then
    post(home, '\1' .. varint(acked) .. varint(dead) .. varint(left) .. (redis.call('HGET', KEYS.sets, name .. NUL) or ''))
    state, since = 'e', floor
    redis.call('UNLINK', KEYS.set)
    redis.call('HDEL', KEYS.sets, name .. NUL)
  end
  redis.call('ZADD', KEYS.set_order, state == 'e' and int(floor) or 0, name)
  row = string.format('%s,%d,%d,%d,%d,%d,%d', state, members, acked, dead, left, since, cancels)
  redis.call('HSET', KEYS.sets, name, row)
end
local answer = 'j' .. (refusal or 'D') .. (row or 'e,0,0,0,0,0,0')
-- include keep.lua
if has_posted then redis.pcall('PUBLISH', KEYS.wake, 'outbox') end
return {'done', answer}

--[[ calls: recognizes a repeated batch. The answers of a producer's last 16 batches are kept for about an hour.

A batch has the slot `number mod 16`. The key is a text: HIGH, the highest executed number, which stands for 16 slots, each with the
last number up to HIGH that belongs there and with the answer `a*`. A slot that has something else follows behind a blank:
`SLOT=NUMBER:ANSWER`, or `SLOT=-` if it has nothing. So a producer that only adds has a plain number here. Of an outbox HIGH is a position: a place,
and perhaps a comma and when its entry was written.

Needs    calls; number (text), the first argument: of an entry of an outbox its position, `<`, and the position before it; clock
Gives    kept: the text; high, a number; others: what follows behind HIGH; number: of an entry its place. The part `keep` keeps the answer of this batch
Returns  {'kept', answer} if the batch was executed before; {'late'} if its number was passed over
Holds    rule 18. A repeat writes too (EXPIRE, or SET of what is there): newer servers confirm only what the connection itself has
         written, so a `WAIT` behind a repeat on a new connection needs a write
Cost     GET
]]
local kept = redis.call('GET', KEYS.calls)
local high, others = tonumber(string.match(kept or '0', '^%d+$')), ''
do
  -- Of an entry of an outbox: its position, the place in that, and the position of the one before it (rule 18).
  local has, own, place, before = kept, string.match(number, '^((%d+),?%d*)<([%d,]+)$')
  if not high then
    -- A blank goes behind it while it is read. Only a position has a comma; what another program wrote counts as nothing.
    has, high, others = string.match(kept .. ' ', own and string.find(kept, '^%d+,') and '^((%d+),%d+)( .*)$' or '^((%d+))( .*)$')
    high, others = tonumber(high or 0), string.sub(others or ' ', 1, -2)
  end
  number = place or number
  if own and high < tonumber(place) and tonumber(string.match(before, '^%d+')) > 0 and has ~= before then return redis.error_reply('DQORDER ' .. int(high)) end
  if high >= tonumber(number) then
    local last, answer = string.match(others, ' ' .. number % 16 .. '=(%d*):?(%S*)')
    -- Of a position only the last answer is kept, and another entry may have had its place.
    if own and own ~= has then last = nil elseif not last and high - number < 16 then last, answer = number, 'a*' end
    if ARGV[1] ~= number then redis.call('SET', KEYS.calls, kept) elseif last == number then redis.call('EXPIRE', KEYS.calls, 3600) end
    if last ~= number then return {'late'} end
    return {'kept', answer}
  end
end

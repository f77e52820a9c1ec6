--[[ owned: looks at keys that a scan of all names found: their types, and what the topic they belong to knows of them. Reads only.

KEYS     for each key its name, and the key that should know of it: the leases of its topic, or the directory; or itself
ARGV     for each key what it is (r rows of a node, h records of a topic, c a key that expires, - another), its type, and the node or
         the topic

Returns  a letter for each key: y (another type), a (rows without a lease), u (a topic that the directory does not have), k (it does
         not expire), or - (nothing)
Holds    rule 8. It has keys of several topics, so a cluster refuses it
Cost     three commands for each key
]]
local letters = {}
for i = 1, #KEYS / 2 do
  local key, beside, what, expected, member = KEYS[2 * i - 1], KEYS[2 * i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  local found, letter = redis.call('TYPE', key).ok, '-'
  if found == 'none' then
    letter = '-'
  elseif found ~= expected then
    letter = 'y'
  elseif what == 'r' and not redis.pcall('ZSCORE', beside, member) then
    letter = 'a'
  elseif what == 'h' and not redis.pcall('ZSCORE', beside, member) then
    letter = 'u'
  elseif what == 'c' and redis.call('TTL', key) == -1 then
    letter = 'k'
  end
  letters[i] = letter
end
return letters

--[[ usual: lets the default delay of the topic take the place of the usual delay of the jobs that bring one.

Needs    usual: the field `delay` of meta; groups, FIRST_JOB; clock
Gives    the groups in ARGV that have the usual delay (`~`) have the delay of the topic (`+`), and so have the metadata of their records
Holds    rule 29. A record whose metadata do not decode keeps its own delay, and is due after that of the topic
Cost     no command
]]
do
  local delay = tonumber(string.match(usual, '^%d+:(%d+):') or 0)
  -- include metadata.lua
  local at = FIRST_JOB
  for i = 6, 4 + 2 * groups, 2 do
    local behind, options, expiry = at + 2 * ARGV[i + 1], string.match(ARGV[i], '^(..)~%d+(.*)$')
    if options then
      ARGV[i] = options .. '+' .. int(delay * 1000) .. expiry
      for job = at + 1, behind - 1, 2 do ARGV[job] = stamped(ARGV[job], {[FIELD.delay] = delay}) end
    end
    at = behind
  end
end

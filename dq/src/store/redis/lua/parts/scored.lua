--[[ scored: the entries of `delayed` for new jobs, some of which have another priority than the normal one.

Needs    queued: due time and id of each; n: how many values these are; list, from: the record of the job at queued[i] is list[from + i];
         clock
Gives    entries: score and id of each
Cost     no command
]]
-- include metadata.lua
-- include score.lua
entries = {}
for i = 1, n, 2 do entries[i], entries[i + 1] = score(tonumber(queued[i]), list[from + i]), queued[i + 1] end

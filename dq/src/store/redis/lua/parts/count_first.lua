--[[ count_first: gets ready to count before the first write of a settle, whose common path would read the clock only behind it.

Gives    what `clock` and `statistics` give
Cost     that of `clock` and `statistics`
]]
-- include clock.lua
-- include statistics.lua

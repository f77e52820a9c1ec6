--[[ told: the state of the topic for an answer.

Needs    paused, draining, usual: fields of meta; left
Gives    told: {paused, draining, usual, left}, each text empty where it is missing, or false where all are
Cost     nothing
]]
local told = (paused or draining or usual) and {paused or '', draining or '', usual or '', left} or false

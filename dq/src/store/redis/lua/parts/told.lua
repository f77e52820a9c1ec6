--[[ told: the state of the topic for an answer.

Needs    paused, draining, usual, concurrency, rate, waiting, group_concurrency, group_rate, group_waiting, group_burst: fields of meta; left
Gives    told: {{paused, draining, usual, concurrency, rate, waiting, group_concurrency, group_rate, group_waiting, group_burst}, left}, or false where all are missing
Cost     nothing
]]
local told = (paused or draining or usual or concurrency or rate or waiting or group_concurrency or group_rate or group_waiting or group_burst)
  and {{paused, draining, usual, concurrency, rate, waiting, group_concurrency, group_rate, group_waiting, group_burst}, left} or false

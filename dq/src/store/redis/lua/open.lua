--[[ open: first contact with a topic: the version it is kept under and the types of its keys. Reads only.

KEYS[1]  {app:topic}:jobs       HASH  job id -> record
KEYS[2]  {app:topic}:delayed    ZSET  job id scored by due time, ms
KEYS[3]  {app:topic}:unacked    ZSET  job id scored by when it was parked, ms
KEYS[4]  {app:topic}:dead       ZSET  job id scored by when it was given up, ms
KEYS[5]  {app:topic}:done       ZSET  job id scored by the end of its retention, ms
KEYS[6]  {app:topic}:broadcasts    ZSET  broadcast id scored by due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[8]  {app:topic}:leases     ZSET  node scored by the end of its lease, ms
KEYS[9]  {app:topic}:pending    HASH  job id -> pending
KEYS[10] {app:topic}:crashes    HASH  job id -> crashes, `!` when isolated
KEYS[11] {app:topic}:meta       HASH  protocol

Returns  1
Holds    nothing is written
Cost     one TYPE a key
]]
-- include types.lua
local meta = KEYS[11]
-- include version.lua
return 1

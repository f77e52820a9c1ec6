--[[ open: checks the protocol version of a topic and the types of its keys, at first contact. Reads only.

KEYS[1]  {app:topic}:jobs            HASH  job id -> record
KEYS[2]  {app:topic}:delayed         ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked         ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead            ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done            ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts      ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:broadcast-jobs  HASH  broadcast id -> record
KEYS[8]  {app:topic}:leases          ZSET  node -> end of its lease, ms
KEYS[9]  {app:topic}:pending         HASH  job id -> pending command
KEYS[10] {app:topic}:crashes         HASH  job id -> crashes, with `+` (grouped) or `!` (alone) behind it
KEYS[11] {app:topic}:meta            HASH  protocol
KEYS[12] {app:topic}:metadata        HASH  job id -> metadata that override those of its record
KEYS[13] {app:topic}:replacements    HASH  job id -> record of the replacement that waits for the end of its run
KEYS[14] {app:topic}:far             ZSET  bounds of the leaves of jobs that are due much later
KEYS[15] {app:topic}:far-jobs        HASH  job id -> due time and record of such a job
KEYS[16] {app:topic}:far-leaves      HASH  bound -> ids of the leaf, as a list of MessagePack
KEYS[17] {app:topic}:history         HASH  job id -> history
KEYS[18] {app:topic}:history-ends    ZSET  id of a job that is gone -> when its history is forgotten, ms
KEYS[19] {app:topic}:grouped         ZSET  waiting jobs and seats of groups, all with score 0
KEYS[20] {app:topic}:taken           ZSET  id that stays taken -> until when, ms, and half a ms more if its job was deleted
KEYS[21] {app:topic}:outbox          ZSET  follow-ups that have not arrived, all with score 0
KEYS[22] {app:topic}:members         HASH  job id -> job set that the job is a member of
KEYS[23] {app:topic}:sets            HASH  name of a job set -> the set
KEYS[24] {app:topic}:set-order       ZSET  name of a job set -> when it ended, ms, or 0

Returns  1
Holds    rule 1
Cost     one TYPE per key
]]
-- include types.lua
-- include version.lua
return 1

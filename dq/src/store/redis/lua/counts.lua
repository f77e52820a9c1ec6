--[[ counts: counts the jobs in each place. Reads only.

KEYS[1]  {app:topic}:jobs        HASH  job id -> record
KEYS[2]  {app:topic}:delayed     ZSET  job id -> due time, ms
KEYS[3]  {app:topic}:unacked     ZSET  job id -> when it was parked, ms
KEYS[4]  {app:topic}:dead        ZSET  job id -> when it became DEAD, ms
KEYS[5]  {app:topic}:done        ZSET  job id -> end of its retention, ms
KEYS[6]  {app:topic}:broadcasts  ZSET  broadcast id -> due time, ms
KEYS[7]  {app:topic}:far         ZSET  bounds of the leaves of jobs that are due much later
KEYS[8]  {app:topic}:far-jobs    HASH  job id -> due time and record of such a job
KEYS[9]  {app:topic}:far-leaves  HASH  bound -> ids of the leaf, as a list of MessagePack

Returns  {clock ms, {delayed, ready, running, unacked, dead, done, broadcasts}, head ms or false}
Holds    rule 2: a job with a record that is in none of the places is RUNNING
Cost     O(log delayed). While no node has brought near what is due, two commands for each leaf of such jobs, of 500 at most
]]
-- include clock.lua
-- include far.lua
-- include counted.lua
return counted

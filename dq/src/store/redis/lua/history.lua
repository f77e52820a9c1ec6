--[[ history: reads the history of a job.

KEYS[1]  {app:topic}:history  HASH  job id -> history
ARGV[1]  id

Returns  {the history, or false}
Holds    rules 1, 31
Cost     one HGET, of about 4 KiB at most
]]
return {redis.call('HGET', history, ARGV[1])}

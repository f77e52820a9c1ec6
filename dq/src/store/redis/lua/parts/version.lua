--[[ version: refuses a topic that is kept under another protocol version, and reads fields of meta.

Needs    meta; PROTOCOL, which the loader writes
Gives    protocol, last_fence, has_retains, watcher, watcher_until, largest (no record that was added has more bytes), far_at (no job
         in the tree of later ones is due before it), paused, draining, usual (the default delay), events (until when steps tell their
         moves), history_setting (what is kept of them), concurrency, rate, waiting, group_concurrency, group_waiting and shut (rule 29), has_groups (the order of the last job that was added to a group), taken_until (no id is taken longer), priorities (whether a job has had another priority than the normal one): fields of meta, each false where it is missing. note, keep_notes, and tells_moves, which is the field members
         (1 while jobs are members of sets) until the part `recorder` gives it its value
Returns  the error `DQVERSION n` if the topic is kept under version n
Cost     one HMGET
]]
local protocol, last_fence, has_retains, watcher, watcher_until, largest, far_at, paused, draining, usual, events, history_setting,
  concurrency, rate, waiting, group_concurrency, group_waiting, shut, priorities, has_groups, taken_until, tells_moves = unpack(redis.call('HMGET', KEYS.meta, 'protocol', 'fence', 'retains', 'watcher', 'watcher-until', 'largest', 'far',
    'paused', 'draining', 'delay', 'events', 'history', 'cluster_concurrency', 'rate', 'max_waiting', 'group_concurrency', 'group_max_waiting', 'shut', 'priorities', 'groups', 'taken', 'members'))
if protocol and protocol ~= PROTOCOL then return redis.error_reply('DQVERSION ' .. protocol) end
local note, keep_notes

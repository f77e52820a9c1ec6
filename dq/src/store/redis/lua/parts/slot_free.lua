--[[ slot_free: a run has ended while due jobs waited for a slot: wakes the watcher, once.

Needs    shut: field of meta; watcher, watcher_until; clock and the part `signal`
Gives    shut: false
Holds    rules 23, 29
Cost     an HDEL and a signal
]]
redis.call('HDEL', KEYS.meta, 'shut')
shut = false
signal('due', 'watcher', watcher, watcher_until, floor)

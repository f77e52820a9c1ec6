--[[ take: keeps ids taken for a time, and forgets some of those whose time has been over for an hour.

Needs    taken, meta; taking.members: until when, ms, and id; taking.last: no id is taken longer; bulk, clock
Gives    `meta` says until when steps look for taken ids. The key expires an hour after that, so what no step forgets goes too. A clock
         that jumps back by less than the hour finds its ids taken again
Holds    rules 1, 5, 18: it comes after the writes for which a server with full memory refuses the step
Cost     ZADD, HSET, EXPIRE and ZRANGE; ZREM if some are forgotten: at most two for each that is written, and 10
]]
write('ZADD', KEYS.taken, taking.members)
redis.call('HSET', KEYS.meta, 'taken', int(taking.last))
redis.call('EXPIRE', KEYS.taken, int(math.ceil((taking.last - floor) / 1000) + 3600))
write('ZREM', KEYS.taken, redis.call('ZRANGE', KEYS.taken, '-inf', int(floor - 3600000), 'BYSCORE', 'LIMIT', '0', int(#taking.members + 10)))

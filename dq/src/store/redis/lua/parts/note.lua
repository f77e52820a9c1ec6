--[[ note: notes in `meta` what other steps need to know of this batch of new jobs, if it is news.

Needs    meta; flags, longest; version
Cost     nothing for most batches; otherwise up to four HSET
]]
if not protocol then redis.call('HSET', KEYS.meta, 'protocol', PROTOCOL) end
if flags ~= '' and not has_retains and string.find(flags, 'r', 1, true) then redis.call('HSET', KEYS.meta, 'retains', 1) end
if flags ~= '' and not priorities and string.find(flags, 'p', 1, true) then redis.call('HSET', KEYS.meta, 'priorities', 1) end
if longest > (tonumber(largest or '') or 0) then redis.call('HSET', KEYS.meta, 'largest', longest) end

local redis = (function(redis, KEYS)
  local declared, ONE, ALL, NONE = {}, 1, 2, 3
  local keys_of = {
    DEL = ALL, EXISTS = ALL, EXPIRE = ONE, GET = ONE, HDEL = ONE, HEXISTS = ONE, HGET = ONE, HLEN = ONE, HMGET = ONE,
    HRANDFIELD = ONE, HSCAN = ONE, HSET = ONE, HSTRLEN = ONE, PUBLISH = NONE, RENAME = ALL, SET = ONE, TIME = NONE, TTL = ONE,
    TYPE = ONE, UNLINK = ALL, ZADD = ONE, ZCARD = ONE, ZCOUNT = ONE, ZLEXCOUNT = ONE, ZMSCORE = ONE, ZRANGE = ONE, ZREM = ONE,
    ZREMRANGEBYRANK = ONE, ZSCAN = ONE, ZSCORE = ONE
  }
  for _, key in ipairs(KEYS) do declared[key] = true end
  local function checked(call)
    return function(name, ...)
      local kind = keys_of[string.upper(name)]
      if not kind then error('the keys of ' .. name .. ' are not known') end
      for at = 1, kind == ONE and 1 or kind == ALL and select('#', ...) or 0 do
        local key = tostring((select(at, ...)))
        if not declared[key] then error('undeclared key ' .. key .. ' of ' .. name) end
      end
      return call(name, ...)
    end
  end
  return setmetatable({call = checked(redis.call), pcall = checked(redis.pcall)}, {__index = redis})
end)(redis, KEYS)

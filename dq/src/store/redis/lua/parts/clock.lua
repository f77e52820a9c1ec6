--[[ clock: the server's clock, read once per step. *Now* rounds down to the millisecond, due times round up (rule 4).

Gives    micros, floor, ceil: now in µs, and in ms rounded down and up. after(µs): now plus that delay, in ms. int(n): n
         as text without an exponent
Cost     one TIME
]]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local floor, ceil = math.floor(micros / 1000), math.ceil(micros / 1000)
local function after(delay) return math.ceil((micros + delay) / 1000) end
local function int(n) return string.format('%d', n) end

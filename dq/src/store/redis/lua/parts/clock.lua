--[[ clock: the server's clock, read once per step. *Now* rounds down to the millisecond, later times round up (rule 4).

Gives    micros, floor: now in µs, and in ms. after(µs): now plus that delay, in ms. int(n): n as text without an exponent
Cost     one TIME
]]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local floor = math.floor(micros / 1000)
local function after(delay) return micros + delay > micros and math.ceil((micros + delay) / 1000) or floor end
local function int(n) return string.format('%d', n) end

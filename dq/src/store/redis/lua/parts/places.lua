--[[ places: finds the places of jobs that have a record.

Needs    delayed, unacked, dead, done; bulk
Gives    places_of(ids): for each id its state (d, u, x dead, f done, or r: in none of them, so RUNNING), and its times
         in ms
Cost     four ZMSCORE per 1000 ids
]]
local function places_of(ids)
  local places, times = {}, {}
  for _, place in ipairs({{'d', KEYS.delayed}, {'u', KEYS.unacked}, {'x', KEYS.dead}, {'f', KEYS.done}}) do
    local state, key = place[1], place[2]
    local scores = read('ZMSCORE', key, ids)
    for i = 1, #ids do
      if scores[i] and not places[i] then places[i], times[i] = state, tonumber(scores[i]) end
    end
  end
  for i = 1, #ids do
    if places[i] == 'd' then times[i] = times[i] % PRIORITY end
    places[i] = places[i] or 'r'
  end
  return places, times
end

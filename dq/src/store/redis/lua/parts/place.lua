--[[ place: in which place known jobs are.

Needs    delayed, unacked, dead, done; bulk
Gives    places_of(ids): for each id d, u, x (dead), f (done) or r (running: in none of them, whoever holds it), and its time
Cost     four ZMSCORE for 1000 ids
]]
local function places_of(ids)
  local places, times = {}, {}
  for _, place in ipairs({{'d', delayed}, {'u', unacked}, {'x', dead}, {'f', done}}) do
    local scores = read('ZMSCORE', place[2], ids)
    for i = 1, #ids do
      if scores[i] and not places[i] then places[i], times[i] = place[1], tonumber(scores[i]) end
    end
  end
  for i = 1, #ids do places[i] = places[i] or 'r' end
  return places, times
end

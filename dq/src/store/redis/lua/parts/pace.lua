--[[ pace: a rate at this moment. It follows `store/rate.rs`, which names the algorithm.

Needs    clock
Gives    pace_of(text, opens, last_claim): of the rate JOBS/MS/BURST whose next claim may come at `opens`, µs, or, if that is nil, an interval after the
         last one; nil if `text` is no rate. Its fields: room: how many jobs of weight 1 may be claimed now. may_start(spent, weight): whether a job of
         this weight may be, behind others that spend so much. next(spent, refused): when a job of weight 1 may be claimed once so much is
         spent now, and when one of the weight `refused` (or nil) may, in µs. forgets: no claim depends on what could come before that
Cost     no command
]]
local function pace_of(text, opens, last_claim)
  local most_jobs, period, burst = string.match(text, '^(%d+)/(%d+)/(%d+)$')
  if not most_jobs then return nil end
  local per = period * 1005
  local function time_of(units) return math.ceil(units * per / most_jobs) end
  local last = math.min(opens or last_claim + time_of(1), micros + time_of(1))
  local oldest = micros - period * 5 - math.floor(burst * per / most_jobs)
  local from = math.max(last, oldest)
  local room = micros < from and 0 or math.floor((micros - from) * most_jobs / per) + 1
  local pace = {room = room, forgets = oldest - per}
  function pace.may_start(spent, weight) return spent + weight <= room or spent == 0 and micros >= last + time_of(weight - 1) end
  function pace.next(spent, refused)
    -- More than there is room for has waited as long as it is heavy.
    local begin = spent == 0 and last or spent > room and math.max(last, micros - time_of(spent - 1)) or from
    local next_at = begin + time_of(spent)
    return next_at, next_at + (refused and time_of(refused - 1) or 0)
  end
  return pace
end

--[[ shut: notes whether jobs are due that have no slot. Then nobody comes for the head, and whoever ends a run wakes the watcher.

Needs    together, in_runs: as the part `slots` gives them; shut: field of meta; claimed, more, come_at, changes
Gives    more, come_at: nothing more is to be had, and there is no time at which it will be
Holds    rules 23, 29
Cost     nothing, or an HDEL
]]
if together and more and in_runs + claimed >= together then
  more, come_at = false, nil
  if shut ~= int(together) then changes[#changes + 1], changes[#changes + 2] = 'shut', int(together) end
elseif shut then
  call('HDEL', meta, 'shut')
end

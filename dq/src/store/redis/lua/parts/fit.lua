--[[ fit: claims no more jobs than have room in an answer.

Needs    n, ids, overridden, most, jobs, metadata; call
Gives    n, and as many ids: at least one
Holds    rule 5
Cost     one HSTRLEN per job, and one more where metadata override those of records
]]
local bytes, fitting = 0, 0
repeat
  bytes = bytes + call('HSTRLEN', KEYS.jobs, ids[fitting + 1])
  if overridden > 0 then bytes = bytes + call('HSTRLEN', KEYS.metadata, ids[fitting + 1]) end
  if bytes <= most or fitting == 0 then fitting = fitting + 1 end
until fitting == n or bytes > most
for i = fitting + 1, n do ids[i] = nil end
n = fitting

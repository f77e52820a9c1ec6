--[[ count_acks: counts the acks of a settle that only acks, and whose jobs leave nothing behind.

Needs    is_plain, acks, stale; statistics
Holds    rules 10, 33: a stale ack is not counted
Cost     that of `statistics`
]]
if is_plain then
  count(3, acks - #stale)
  count(4, acks - #stale)
  keep_statistics()
end

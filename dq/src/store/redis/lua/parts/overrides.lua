--[[ overrides: reads the metadata of jobs. A record never changes: metadata that changed are in the key `metadata`, and override
those of the record. Those of a large record are there from the beginning.

Needs    jobs, metadata; bulk, metadata
Gives    metadata_of(ids): for each id its metadata as text, '' if they do not decode, or false if it has no record
Cost     one EXISTS, and one HMGET per 1000 ids; while `metadata` is there, one HMGET more, and one HEXISTS per job that it
         has. No payload of a large record is read
]]
local function metadata_of(ids)
  local found = redis.call('EXISTS', KEYS.metadata) == 1 and read('HMGET', KEYS.metadata, ids) or {}
  local rest, positions = {}, {}
  for i = 1, #ids do
    if not found[i] then
      rest[#rest + 1], positions[#rest + 1] = ids[i], i
    elseif redis.call('HEXISTS', KEYS.jobs, ids[i]) == 0 then
      found[i] = false
    end
  end
  local records = read('HMGET', KEYS.jobs, rest)
  for k, i in ipairs(positions) do found[i] = records[k] and metadata_in(records[k]) end
  return found
end

--[[ metadata: the metadata of a record, read and changed by position (`dq/src/job/metadata.rs` has the layout).

Gives    fixed(record): delay, retain in ms, parked as text or nil, exhausted; of bytes that are no record those of a plain one.
         with_metadata(record, metadata, parked): the record behind a new metadata ('' = as it is) under this parking fence.
         exhaust_by_crashes(record), revived(record): changed as the names say
Holds    no text is decoded; the payload stays where it is. Bytes that are no record become the payload of a plain one
]]
local FIELDS = {{1, 'delay', 6}, {2, 'expires', 6}, {4, 'retain', 6}, {8, 'parked', 8}}
local EXHAUSTED, KNOWN, CRASHES = 128, 255, 5
local function split(record)
  local plain = {flags = 0, attempts = 0, cause = 0, texts = '', rest = 'J' .. record}
  if #record < 8 then return plain end
  local version, length, flags, attempts, cause = struct.unpack('<BI2I2I2B', record)
  if version ~= 1 or length < 8 or length >= #record or flags > KNOWN or cause > 6 then return plain end
  local p, at = {flags = flags, attempts = attempts, cause = cause}, 9
  for _, field in ipairs(FIELDS) do
    if bit.band(flags, field[1]) ~= 0 then
      p[field[2]] = string.sub(record, at, at + field[3] - 1)
      at = at + field[3]
    end
  end
  if at > length + 1 then return plain end
  p.texts, p.rest = string.sub(record, at, length), string.sub(record, length + 1)
  return p
end
local function join(p)
  local flags, fields = bit.band(p.flags, bit.bnot(15)), {}
  for _, field in ipairs(FIELDS) do
    if p[field[2]] then
      flags = flags + field[1]
      fields[#fields + 1] = p[field[2]]
    end
  end
  local body = table.concat(fields) .. p.texts
  return struct.pack('<BI2I2I2B', 1, 8 + #body, flags, p.attempts, p.cause) .. body .. p.rest
end
local function fixed(record)
  local p = split(record)
  local function number(field, format) return field and struct.unpack(format, field) or 0 end
  return {
    delay = number(p.delay, '<I6'), retain = number(p.retain, '<I6'), expires = p.expires and number(p.expires, '<I6'),
    parked = p.parked and int(number(p.parked, '<I8')), exhausted = bit.band(p.flags, EXHAUSTED) ~= 0,
  }
end
local function with_metadata(record, metadata, parked)
  if metadata == '' and fixed(record).parked == parked then return record end
  local p = split(record)
  if metadata ~= '' then
    local rest = p.rest
    p = split(metadata .. 'J')
    p.rest = rest
  end
  p.parked = parked and struct.pack('<I8', tonumber(parked))
  return join(p)
end
local function exhaust_by_crashes(record)
  local p = split(record)
  p.flags, p.cause = bit.bor(p.flags, EXHAUSTED), CRASHES
  return join(p)
end
local function revived(record)
  local p = split(record)
  p.flags, p.attempts, p.expires = bit.band(p.flags, bit.bnot(EXHAUSTED)), 0, nil
  return join(p)
end

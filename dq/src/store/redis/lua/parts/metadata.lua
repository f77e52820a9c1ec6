--[[ metadata: reads and changes the metadata of a record by position (`dq/src/job/metadata.rs` has the layout).

Needs    clock
Gives    fixed(record): delay, retain and expires in ms, parking_fence as text or nil, exhausted. with_metadata(record,
         metadata, parking_fence): the record with this metadata ('' = unchanged) and this parking fence (nil = none).
         exhausted_by_crashes(record): the record, exhausted. revived(record): the record without attempts, exhaustion
         and expiry
Holds    no text is decoded and the payload is not touched. A record that does not decode counts as the payload of a
         plain one
]]
local FIELDS = {{1, 'delay', 6}, {2, 'expires', 6}, {4, 'retain', 6}, {8, 'parking_fence', 8}}
local ALL_FIELDS, EXHAUSTED, ALL_FLAGS, LAST_CAUSE, CRASHES = 15, 128, 255, 6, 5
local function split(record)
  local plain = {flags = 0, attempts = 0, cause = 0, texts = '', payload = 'J' .. record}
  if #record < 8 then return plain end
  local version, length, flags, attempts, cause = struct.unpack('<BI2I2I2B', record)
  if version ~= 1 or length < 8 or length >= #record or flags > ALL_FLAGS or cause > LAST_CAUSE then return plain end
  local parts, at = {flags = flags, attempts = attempts, cause = cause}, 9
  for _, field in ipairs(FIELDS) do
    local flag, name, size = field[1], field[2], field[3]
    if bit.band(flags, flag) ~= 0 then
      parts[name] = string.sub(record, at, at + size - 1)
      at = at + size
    end
  end
  if at > length + 1 then return plain end
  parts.texts, parts.payload = string.sub(record, at, length), string.sub(record, length + 1)
  return parts
end
local function join(parts)
  local flags, fields = bit.band(parts.flags, bit.bnot(ALL_FIELDS)), {}
  for _, field in ipairs(FIELDS) do
    local flag, name = field[1], field[2]
    if parts[name] then
      flags = flags + flag
      fields[#fields + 1] = parts[name]
    end
  end
  local body = table.concat(fields) .. parts.texts
  return struct.pack('<BI2I2I2B', 1, 8 + #body, flags, parts.attempts, parts.cause) .. body .. parts.payload
end
local function fixed(record)
  local parts = split(record)
  local function number(field, format) return field and struct.unpack(format, field) or 0 end
  return {
    delay = number(parts.delay, '<I6'), retain = number(parts.retain, '<I6'),
    expires = parts.expires and number(parts.expires, '<I6'),
    parking_fence = parts.parking_fence and int(number(parts.parking_fence, '<I8')),
    exhausted = bit.band(parts.flags, EXHAUSTED) ~= 0,
  }
end
local function with_metadata(record, metadata, parking_fence)
  if metadata == '' and fixed(record).parking_fence == parking_fence then return record end
  local parts = split(record)
  if metadata ~= '' then
    local payload = parts.payload
    parts = split(metadata .. 'J')
    parts.payload = payload
  end
  parts.parking_fence = parking_fence and struct.pack('<I8', tonumber(parking_fence))
  return join(parts)
end
local function exhausted_by_crashes(record)
  local parts = split(record)
  parts.flags, parts.cause = bit.bor(parts.flags, EXHAUSTED), CRASHES
  return join(parts)
end
local function revived(record)
  local parts = split(record)
  parts.flags, parts.attempts, parts.expires = bit.band(parts.flags, bit.bnot(EXHAUSTED)), 0, nil
  return join(parts)
end

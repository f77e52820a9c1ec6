--[[ metadata: reads and changes metadata as text, apart from payloads (`dq/src/job/metadata.rs` has the layout).

Needs    clock
Gives    metadata_in(record): the metadata in a record, or '' if it does not decode. own_metadata(record): what the key
         `metadata` keeps of a new record from the beginning, or nil: of a large one, so that no script reads that record for
         its metadata. fixed(text): delay, retain and expires in ms, parking_fence as text or nil, exhausted.
         with_metadata(text, new, parking_fence): `new` ('' = `text`) with this parking fence (nil = none).
         exhausted_by(cause, text): the cause is CRASHES or PLACE_LOST. revived(text): without attempts, exhaustion and expiry
Holds    no text is decoded. Metadata that do not decode count as plain
]]
local FIELDS = {{1, 'delay', 6}, {2, 'expires', 6}, {4, 'retain', 6}, {8, 'parking_fence', 8}}
local ALL_FIELDS, EXHAUSTED, ALL_FLAGS, LAST_CAUSE, CRASHES, PLACE_LOST = 15, 128, 255, 7, 5, 7
local LARGE = 4096
local function metadata_in(record)
  if #record < 9 then return '' end
  local version, length = struct.unpack('<BI2', record)
  if version ~= 1 or length < 8 or length >= #record then return '' end
  return string.sub(record, 1, length)
end
local function own_metadata(record) return #record > LARGE and metadata_in(record) or nil end
local function split(text)
  local plain = {flags = 0, attempts = 0, cause = 0, texts = ''}
  if #text < 8 then return plain end
  local version, length, flags, attempts, cause = struct.unpack('<BI2I2I2B', text)
  if version ~= 1 or length ~= #text or flags > ALL_FLAGS or cause > LAST_CAUSE then return plain end
  local parts, at = {flags = flags, attempts = attempts, cause = cause}, 9
  for _, field in ipairs(FIELDS) do
    local flag, name, size = field[1], field[2], field[3]
    if bit.band(flags, flag) ~= 0 then
      parts[name] = string.sub(text, at, at + size - 1)
      at = at + size
    end
  end
  if at > length + 1 then return plain end
  parts.texts = string.sub(text, at)
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
  return struct.pack('<BI2I2I2B', 1, 8 + #body, flags, parts.attempts, parts.cause) .. body
end
local function fixed(text)
  local parts = split(text)
  local function number(field, format) return field and struct.unpack(format, field) or 0 end
  return {
    delay = number(parts.delay, '<I6'), retain = number(parts.retain, '<I6'),
    expires = parts.expires and number(parts.expires, '<I6'),
    parking_fence = parts.parking_fence and int(number(parts.parking_fence, '<I8')),
    exhausted = bit.band(parts.flags, EXHAUSTED) ~= 0,
  }
end
local function with_metadata(text, new, parking_fence)
  if new == '' and fixed(text).parking_fence == parking_fence then return text end
  local parts = split(new == '' and text or new)
  parts.parking_fence = parking_fence and struct.pack('<I8', tonumber(parking_fence))
  return join(parts)
end
local function exhausted_by(cause, text)
  local parts = split(text)
  parts.flags, parts.cause = bit.bor(parts.flags, EXHAUSTED), cause
  return join(parts)
end
local function revived(text)
  local parts = split(text)
  parts.flags, parts.attempts, parts.expires = bit.band(parts.flags, bit.bnot(EXHAUSTED)), 0, nil
  return join(parts)
end

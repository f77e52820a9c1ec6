--[[ metadata: reads and changes metadata as text, apart from payloads (`dq/src/job/metadata/encoding.rs` has the layout).

Needs    clock
Gives    metadata_in(record): the metadata in a record, or '' if it does not decode. own_metadata(record): what the key
         `metadata` keeps of a new record from the beginning, or nil: of a large one, so that no script reads that record for
         its metadata. fixed(text): delay, retain and expires in ms, parking_fence as text or nil, exhausted.
         with_metadata(text, new, parking_fence): `new` ('' = `text`) with this parking fence (nil = none).
         exhausted_by(cause, text): the cause is CRASHES or PLACE_LOST. revived(text): without attempts, exhaustion and expiry
Holds    no text is decoded. Metadata that do not decode count as plain
]]
local FORMAT, LAST_FORMAT, WEIGHED, GROUPED = 144, 191, 7, 8
-- The flags; TEXTS are those of texts.
local EXPIRES, RETAIN, PARKED, FAILED, TEXTS, CHANGED = 1, 2, 4, 8, 112, 128
local EXHAUSTED, LAST_CAUSE, CRASHES, PLACE_LOST, LONG = 128, 8, 5, 7, 65535
local LARGE = 4096
-- Where the fields that are numbers end, where all metadata end, the flags, and where the group ends, which is between the numbers and the texts;
-- nothing if these are no metadata.
local function ends_of(text)
  local first, flags = string.byte(text, 1, 2)
  if not flags or first < FORMAT or first > LAST_FORMAT then return nil end
  local fields_end = 2 + first % GROUPED
  -- A weight, of two bytes, and a delay of six.
  if first % GROUPED == WEIGHED then fields_end = fields_end + 1 end
  if flags == 0 and first % 16 < GROUPED then return fields_end, fields_end, flags, fields_end end
  -- Each flag, where it is set, becomes the size of its field.
  fields_end = fields_end + bit.band(flags, EXPIRES) * 6 + bit.band(flags, RETAIN) * 3 + bit.band(flags, PARKED) * 2
    + bit.band(flags, FAILED) / FAILED * 3 + bit.band(flags, CHANGED) / CHANGED * 10
  local group_end = fields_end
  if first % 16 >= GROUPED then
    local length = string.byte(text, fields_end + 1)
    if not length or #text < fields_end + 9 + length then return nil end
    group_end = fields_end + 9 + length
  end
  if bit.band(flags, TEXTS) == 0 then return fields_end, group_end, flags, group_end end
  local low, high = string.byte(text, group_end + 1, group_end + 2)
  if not high then return nil end
  local size = low + 256 * high
  if size < LONG then return fields_end, group_end + 2 + size, flags, group_end end
  -- There is a long state behind the texts.
  if #text < group_end + 6 then return nil end
  return fields_end, group_end + 6 + struct.unpack('<I4', text, group_end + 3), flags, group_end
end
local function metadata_in(record)
  local _, length = ends_of(record)
  if not length or length >= #record then return '' end
  return string.sub(record, 1, length)
end
local function own_metadata(record) return #record > LARGE and metadata_in(record) or nil end
-- The fields as they are written; `texts` has the bytes of all texts and of the state, with their length.
local function plain() return {format = FORMAT, failed = '', weight = '', delay = '', group = '', text_flags = 0, texts = ''} end
local function split(text)
  local fields_end, length, flags, group_end = ends_of(text)
  if length ~= #text then return plain() end
  local at = 3
  local function field(flag, size)
    if bit.band(flags, flag) == 0 then return nil end
    at = at + size
    return string.sub(text, at - size, at - 1)
  end
  local expires = field(EXPIRES, 6)
  local retain = field(RETAIN, 6)
  local parking_fence = field(PARKED, 8)
  local failed = field(FAILED, 3) or ''
  if failed ~= '' and bit.band(string.byte(failed, 3), 127) > LAST_CAUSE then return plain() end
  local changed = field(CHANGED, 10)
  local first = string.byte(text)
  local weight = first % GROUPED == WEIGHED and string.sub(text, at, at + 1) or ''
  local weighs = weight ~= '' and struct.unpack('<I2', weight) or 1
  if weighs < 1 or weighs > 10000 then return plain() end
  at = at + #weight
  return {
    format = first - first % 16, expires = expires, retain = retain, parking_fence = parking_fence, failed = failed, changed = changed, weight = weight, delay = string.sub(text, at, fields_end),
    group = string.sub(text, fields_end + 1, group_end), text_flags = bit.band(flags, TEXTS), texts = string.sub(text, group_end + 1),
  }
end
local function join(parts)
  local flags = parts.text_flags + (parts.expires and EXPIRES or 0) + (parts.retain and RETAIN or 0)
    + (parts.parking_fence and PARKED or 0) + (parts.failed ~= '' and FAILED or 0) + (parts.changed and CHANGED or 0)
  local length = #parts.delay
  if parts.weight ~= '' then length, parts.delay = WEIGHED, parts.delay .. string.rep('\0', 6 - length) end
  return string.char(parts.format + (parts.group ~= '' and GROUPED or 0) + length, flags) .. (parts.expires or '') .. (parts.retain or '')
    .. (parts.parking_fence or '') .. parts.failed .. (parts.changed or '') .. parts.weight .. parts.delay .. parts.group .. parts.texts
end
local function fixed(text)
  local parts = split(text)
  local function number(field) return field and field ~= '' and struct.unpack('<I' .. #field, field) or 0 end
  return {
    delay = number(parts.delay), retain = number(parts.retain),
    expires = parts.expires and number(parts.expires),
    parking_fence = parts.parking_fence and int(number(parts.parking_fence)),
    exhausted = parts.failed ~= '' and string.byte(parts.failed, 3) >= EXHAUSTED,
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
  parts.failed = (parts.failed == '' and '\0\0' or string.sub(parts.failed, 1, 2)) .. string.char(EXHAUSTED + cause)
  return join(parts)
end
local function revived(text)
  local parts = split(text)
  local cause = parts.failed == '' and 0 or bit.band(string.byte(parts.failed, 3), 127)
  parts.failed, parts.expires = cause == 0 and '' or '\0\0' .. string.char(cause), nil
  return join(parts)
end

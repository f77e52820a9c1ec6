--[[ edit: changes the version, the first add and the expiry in metadata, and tells versions and due times as text.

Needs    metadata
Gives    change_facts(text): version, and when the job was first added, in ms (0: never). edited(text, version, first, shift): the
         metadata with these, and with an expiry that is `shift` ms later. payload_of(record, text): what is behind its metadata
         `text`. told(version, due): `VERSION`, `VERSION,DUE` or `VERSION,` (due when the last one is), and a semicolon; in hex
Holds    rule 28. No text is decoded
]]
local LAST_VERSION, LAST_EXPIRY, LATEST_DUE = 4294967295, 281474976710655, 4398046511104
local function change_facts(text)
  local changed = split(text).changed
  if not changed then return 0, 0 end
  local version, first = struct.unpack('<I4I6', changed)
  return version, first
end
local function edited(text, version, first, shift)
  local parts = split(text)
  if parts.expires and shift ~= 0 then
    local expires = struct.unpack('<I6', parts.expires) + shift
    parts.expires = struct.pack('<I6', math.max(0, math.min(expires, LAST_EXPIRY)))
  end
  parts.changed = (version > 0 or first > 0) and struct.pack('<I4I6', version, first) or nil
  return join(parts)
end
local function payload_of(record, text) return text == '' and 'J' .. record or string.sub(record, #text + 1) end
local last_told
local function told(version, due)
  local text = version == 0 and '' or string.format('%x', version)
  if due then
    text = text .. ',' .. (due == last_told and '' or string.format('%x', due))
    last_told = due
  end
  return text .. ';'
end

--[[ edit: changes the version, the first add and the expiry in metadata, and tells versions and due times as text.

Needs    metadata
Gives    change_facts(text): version, and when the job was first added, in ms (0: never). edited(text, version, first, shift): the
         metadata with these, and with an expiry that is `shift` ms later. payload_of(record, text): what is behind its metadata
         `text`. told(version, due): `VERSION`, `VERSION,DUE` or `VERSION,` (due when the last one is), and a semicolon; in hex
Holds    rule 28
]]
local LAST_VERSION, LAST_EXPIRY, LATEST_DUE = 4294967295, 281474976710655, 4398046511104
local function change_facts(text) return field(text, FIELD.version) or 0, field(text, FIELD.first_added) or 0 end
local function edited(text, version, first, shift)
  local expires = field(text, FIELD.expires_at) or 0
  if expires > 0 then expires = math.max(1, math.min(expires + shift, LAST_EXPIRY)) end
  return with_fields(text, {[FIELD.version] = version, [FIELD.first_added] = first, [FIELD.expires_at] = expires})
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

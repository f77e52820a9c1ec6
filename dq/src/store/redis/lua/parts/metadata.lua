--[[ metadata: reads and changes metadata, apart from payloads: a list of MessagePack (`dq/src/job/metadata/encoding.rs` has its form).

Needs    clock; FIELD, the place of each field in the list, and BOUNDS, what each may be, which the loader writes
Gives    list_of(text): the fields in metadata, or in a record, as a list that nobody may change, and where they end; nothing if it does not begin
         with metadata. field(text, place): one of them, or nil if it is absent, which most are. parking_fence_of(text): as text, or nil.
         metadata_in(record): as text, or '' if it does not decode. own_metadata(record): what the key `metadata` keeps of a new record from
         the beginning, or nil: of a large one, so that no script reads that record for its metadata. with_fields(text, fields): the metadata with
         other fields, by their places. stamped(record, fields): the same of a record. with_metadata(text, new, parking_fence): `new`, which has
         none, or `text` if it is '', with this parking fence (nil = none). exhausted_by(cause, text): the cause is CRASHES or PLACE_LOST.
         revived(text): without attempts, exhaustion and expiry
Holds    a field that is not there is 0, false, '' or an empty list. Metadata that do not decode count as plain
]]
local CRASHES, PLACE_LOST, LARGE, LAST_EXACT = 5, 7, 4096, 9007199254740992
local list_of, metadata_in, with_fields
do
  local bounds, lists, lengths = BOUNDS, {}, {}
  function list_of(text)
    if lists[text] then return lists[text], lengths[text] end
    local first, second, count = string.byte(text, 1, 3)
    if not first or (first < 144 or first > 159) and (first ~= 220 or second ~= 0) then return nil end
    if first < 220 then count = first - 144 end
    local is_list, length, list = pcall(cmsgpack.unpack_one, text, 0)
    if not is_list or count > #bounds then return nil end
    for i = 1, count do
      local value, bound = list[i], bounds[i]
      if type(value) == 'string' and type(bound) == 'number' then
        value = string.find(value, '^%d+$') and tonumber(value)
        if value and value <= LAST_EXACT then list[i] = value end
      end
      if type(value) ~= type(bound) or type(value) == 'number' and not (value >= 0 and value <= bound and value % 1 == 0) then return nil end
    end
    lists[text], lengths[text] = list, length < 0 and #text or length
    return list, lengths[text]
  end
  function metadata_in(record)
    local list, length = list_of(record)
    if not list or length >= #record then return '' end
    local text = string.sub(record, 1, length)
    lists[text], lengths[text] = list, length
    return text
  end
  local function is_absent(value) return value == 0 or value == '' or value == false or type(value) == 'table' and #value == 0 end
  function with_fields(text, fields)
    local list = {unpack(list_of(text) or {})}
    for place, value in pairs(fields) do
      for i = #list + 1, place - 1 do list[i] = type(bounds[i]) == 'number' and 0 or bounds[i] end
      list[place] = value
    end
    while is_absent(list[#list]) do list[#list] = nil end
    return cmsgpack.pack(list)
  end
end
local function own_metadata(record) return #record > LARGE and metadata_in(record) or nil end
local function stamped(record, fields)
  local text = metadata_in(record)
  return text == '' and record or with_fields(text, fields) .. string.sub(record, #text + 1)
end
local function field(text, place)
  local is_long = (string.byte(text, 1) or 0) >= 144 + place
  local value = is_long and (list_of(text) or {})[place]
  if value and value ~= 0 and value ~= '' then return value end
end
local function parking_fence_of(text)
  local fence = field(text, FIELD.parked_by)
  return fence and (type(fence) == 'string' and fence or int(fence))
end
local function with_metadata(text, new, parking_fence)
  if new ~= '' and not parking_fence then return new end
  if new == '' and parking_fence_of(text) == parking_fence then return text end
  local number = tonumber(parking_fence or 0)
  return with_fields(new == '' and text or new, {[FIELD.parked_by] = (not parking_fence or int(number) == parking_fence) and number or parking_fence})
end
local function exhausted_by(cause, text) return with_fields(text, {[FIELD.exhausted] = true, [FIELD.cause] = cause}) end
local function revived(text) return with_fields(text, {[FIELD.attempts] = 0, [FIELD.exhausted] = false, [FIELD.expires_at] = 0}) end

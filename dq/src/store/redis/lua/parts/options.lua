--[[ options: gives metadata other options.

Needs    metadata
Gives    with_options(text, argument): the metadata with those options that the argument of `change` names
Holds    rule 28. No text is decoded: each has its length in front, and the state is what is left behind them
]]
local RETRY, HEADERS, ERROR, NONE = 16, 32, 64, '\0\0'
local function texts_of(parts)
  local texts, at = {}, 3
  if string.sub(parts.texts, 1, 2) == '\255\255' then at = 7 end
  for _, flag in ipairs({RETRY, HEADERS, ERROR}) do
    if bit.band(parts.text_flags, flag) > 0 then
      local low, high = string.byte(parts.texts, at, at + 1)
      local behind = at + 2 + (low or 0) + 256 * (high or 0)
      texts[flag], at = string.sub(parts.texts, at, behind - 1), behind
    end
  end
  -- A state without a text stands behind headers that are none.
  if texts[HEADERS] == NONE then texts[HEADERS] = nil end
  return texts, string.sub(parts.texts, at)
end
local function with_options(text, argument)
  local colon = string.find(argument, ':', 1, true)
  local letters, given, parts = string.sub(argument, 1, colon), split(string.sub(argument, colon + 1)), split(text)
  local texts, state = texts_of(parts)
  local new, all = texts_of(given), ''
  if string.find(letters, 'r', 1, true) then texts[RETRY] = new[RETRY] end
  if string.find(letters, 'h', 1, true) then texts[HEADERS] = new[HEADERS] end
  if string.find(letters, 'k', 1, true) then parts.retain = given.retain end
  if state ~= '' and not (texts[RETRY] or texts[HEADERS] or texts[ERROR]) then texts[HEADERS] = NONE end
  parts.text_flags = 0
  for _, flag in ipairs({RETRY, HEADERS, ERROR}) do
    if texts[flag] then parts.text_flags, all = parts.text_flags + flag, all .. texts[flag] end
  end
  all = all .. state
  local long = #all >= LONG and struct.pack('<I4', #all) or ''
  parts.texts = all == '' and '' or struct.pack('<I2', math.min(#all, LONG)) .. long .. all
  return join(parts)
end

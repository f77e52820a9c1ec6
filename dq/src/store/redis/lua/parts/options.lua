--[[ options: gives metadata other options.

Needs    metadata
Gives    with_options(text, argument): the metadata with those options that the argument of `change` names
Holds    rule 28
]]
local function with_options(text, argument)
  local letters, given = string.match(argument, '^(%l*):(.*)$')
  local list, new = list_of(given) or {}, {}
  for letter in string.gmatch(letters, '%l') do
    if letter == 'r' then new[FIELD.retry] = list[FIELD.retry] or '' end
    if letter == 'h' then new[FIELD.headers] = list[FIELD.headers] or {} end
    if letter == 'k' then new[FIELD.retain] = list[FIELD.retain] or 0 end
  end
  return with_fields(text, new)
end

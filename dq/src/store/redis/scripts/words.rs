//! What the loader writes in place of words of a script, so that they take no room: Lua has 200 locals in a function.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Step;

/// The names of constants, in capital letters, and their values.
type Constants<'a> = BTreeMap<&'a str, Cow<'a, str>>;

/// Writes the numbers of keys in place of their names, and values in place of constants: those that are `given`, and those that a line of the
/// script names, `local MOST, LAST = 1000, 'z'`.
pub(super) fn replaced<'a>(step: Step, text: &'a str, given: Constants<'a>) -> String {
    let (mut constants, mut code) = (given, String::with_capacity(text.len()));
    for line in text.lines() {
        match constants_of(line) {
            Some(found) => found.for_each(|(name, value)| {
                let older = constants.insert(name, value.into());
                assert!(older.is_none_or(|older| older == value), "{}: {name} is one constant", step.name());
            }),
            None => code.extend([line, "\n"]),
        }
    }
    let mut replaced = String::with_capacity(code.len());
    let mut rest = code.as_str();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = rest.split_at(length_of_token(rest, first));
        match (token.strip_prefix("KEYS."), constants.get(token)) {
            (Some(name), _) => replaced.push_str(&key(step, name)),
            (None, Some(value)) => replaced.push_str(value),
            (None, None) => replaced.push_str(token),
        }
        rest = behind;
    }
    replaced
}

/// The constants that a line names, if it names nothing else.
fn constants_of(line: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let (names, values) = line.trim_start().strip_prefix("local ")?.split_once(" = ")?;
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_value =
        |value: &str| value.chars().all(|c| c.is_ascii_digit()) || value.starts_with('\'') && value.ends_with('\'');
    let is_all = names.split(", ").all(is_name) && values.split(", ").all(is_value);
    is_all.then(|| names.split(", ").zip(values.split(", ")))
}

/// The length of what a text begins with: a comment, a string, a word with its fields, or what is between such.
fn length_of_token(text: &str, first: char) -> usize {
    let length_until = |is_end: &dyn Fn(char) -> bool| text.find(is_end).unwrap_or(text.len());
    if text.starts_with("--") {
        length_until(&|c| c == '\n')
    } else if first == '\'' || first == '"' {
        let mut is_escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == first && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        end.map_or(text.len(), |(at, _)| at + 1)
    } else if first.is_ascii_alphanumeric() || first == '_' {
        length_until(&|c| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
    } else {
        let is_next = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '\'' | '"');
        text.char_indices().skip(1).find(|(_, c)| is_next(*c)).map_or(text.len(), |(at, _)| at)
    }
}

/// A key as the script is called with it; nil if the step has no such key.
fn key(step: Step, name: &str) -> Cow<'static, str> {
    match step.keys().iter().position(|key| key.suffix().replace('-', "_") == name) {
        Some(at) => format!("KEYS[{}]", at + 1).into(),
        None => "nil".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_numbers_and_constants_their_values() {
        let text = "local MOST, NAME = 12, 'it\\'s'\nlocal jobs = {MOST, x.MOST, NAME, KEYS.leases, KEYS.statistics} -- MOST\n\
                    return 'MOST' .. PROTOCOL\n";
        let given = [("PROTOCOL", "'1'".into())].into();
        let wanted = "local jobs = {12, x.MOST, 'it\\'s', KEYS[2], nil} -- MOST\nreturn 'MOST' .. '1'\n";
        assert_eq!(replaced(Step::Renew, text, given), wanted);
    }
}

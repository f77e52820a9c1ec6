//! Text of strangers on a terminal: ids, errors, headers and payloads may have anything in them.

use serde::Serialize;

/// Whether a terminal does something with a character instead of showing it, or shows the text around it in another order.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text with every control character as `\u{..}`, or `\n`, `\t` and `\r`.
pub fn safe(text: &str) -> String {
    escaped(text, |_| false)
}

/// As [`safe`], and lines stay lines: for texts that this program or dq has put together.
pub fn safe_lines(text: &str) -> String {
    escaped(text, |c| c == '\n')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_control(c) && !stays(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// The text, safe and cut to `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    let safe = safe(text);
    match safe.char_indices().nth(most) {
        None => safe,
        Some(_) => safe.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A line of JSON without a raw control character: those outside of ASCII become `\uXXXX` too, which changes no value.
///
/// # Errors
/// If the value cannot be JSON.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_control(c) => {
                let mut units = [0; 2];
                safe.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
            c => safe.push(c),
        }
    }
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_is_left() {
        let hostile = "a\u{1b}[2J\n\t\u{9b}31m\u{202e}\u{7f}\u{200b}ß";
        assert_eq!(safe(hostile), "a\\u{1b}[2J\\n\\t\\u{9b}31m\\u{202e}\\u{7f}\\u{200b}ß");
        assert_eq!(safe_lines("a\nb\r"), "a\nb\\r");
        let text = json(&hostile).unwrap();
        assert!(!text.chars().any(is_control), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}

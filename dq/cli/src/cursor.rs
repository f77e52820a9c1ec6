//! The position in a list as a word that needs no quotes in a shell.

use std::fmt::Write;

use dq::inspect::Cursor;
use dq::time::Timestamp;

/// The word of a cursor: the time in milliseconds, `:`, and the id with `%XX` for all but letters, digits, `.`, `_` and `-`.
pub fn word(cursor: &Cursor) -> String {
    let mut word = format!("{}:", cursor.at.as_millis());
    for byte in cursor.id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => word.push(char::from(byte)),
            byte => write!(word, "%{byte:02x}").expect("a String takes all"),
        }
    }
    word
}

/// Reads the word of a cursor.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str) -> Result<Cursor, String> {
    let wrong = || format!("`{text}` is not a cursor: take the one that the previous page printed");
    let (at, id) = text.split_once(':').ok_or_else(wrong)?;
    let at = at.parse().map(Timestamp::from_millis).map_err(|_| wrong())?;
    let mut bytes = Vec::with_capacity(id.len());
    let mut rest = id.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let hex = [*high, *low];
                let hex = std::str::from_utf8(&hex).map_err(|_| wrong())?;
                bytes.push(u8::from_str_radix(hex, 16).map_err(|_| wrong())?);
                rest = behind;
            }
            (b'%', _) => return Err(wrong()),
            (byte, behind) => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    let id = String::from_utf8(bytes).map_err(|_| wrong())?;
    Ok(Cursor { at, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cursor_has_a_word_that_leads_back() {
        for id in ["", "order:7", "a b'\"$\n%41ß", "host/1#2", "\u{10ffff}"] {
            let cursor = Cursor { at: Timestamp::from_millis(1_763_000_000_000), id: id.into() };
            let word = word(&cursor);
            assert!(word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":%._-".contains(&byte)), "{word}");
            assert_eq!(read(&word), Ok(cursor));
        }
        for bad in ["", "7", "x:y", "1:%4", "1:%zz", "1:%ff"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

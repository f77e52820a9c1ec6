//! The words of a server in an error.

use redis::RedisError;

use crate::job::limits::cut;

/// The most bytes of an error that a server's words have.
const MAX_WORDS: usize = 1_024;

/// The error in the words of the server, or of the client where the server said nothing. A server may say anything, so this is where its words
/// are cut and every character that a terminal does not show is escaped.
pub(super) fn words_of(error: &RedisError) -> String {
    let said = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{} {}", cut(code, MAX_WORDS), cut(detail, MAX_WORDS + 1)),
        _ => error.to_string(),
    };
    let mut words = String::new();
    for c in cut(&said, MAX_WORDS).chars() {
        match c {
            '\'' | '"' | '\\' => words.push(c),
            c => words.extend(c.escape_debug()),
        }
    }
    if said.len() > MAX_WORDS {
        words.push('…');
    }
    words
}

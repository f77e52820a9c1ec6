//! JSON: how a payload is written, exactly or not at all.
//!
//! JSON has one `null` for several values of Rust. Written without a check, `NaN`, infinities and `Some(None)` would be accepted
//! by an add and be something else, or nothing that decodes, when the handler gets them. So such a payload is refused, with the
//! place of the value. The check costs nothing until a `null` was written: then [`exact`] looks where each comes from.

mod exact;
#[cfg(test)]
mod tests;

use std::io;

use serde::Serialize;
use serde::ser::Error;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// How deep lists and objects may be nested: a decoder accepts no more.
const DEEPEST: usize = 127;

/// What is worth knowing of a text that is written.
#[derive(Debug, Default)]
struct Notes {
    has_null: bool,
    depth: usize,
    deepest: usize,
}

impl Notes {
    const fn opens(&mut self) {
        self.depth += 1;
        if self.depth > self.deepest {
            self.deepest = self.depth;
        }
    }

    const fn closes(&mut self) {
        self.depth -= 1;
    }
}

/// Writes compact JSON, and takes notes.
struct Noting<'a>(&'a mut Notes);

impl Formatter for Noting<'_> {
    fn write_null<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.has_null = true;
        CompactFormatter.write_null(writer)
    }

    fn begin_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.opens();
        CompactFormatter.begin_array(writer)
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.closes();
        CompactFormatter.end_array(writer)
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.opens();
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.closes();
        CompactFormatter.end_object(writer)
    }
}

/// Writes a payload.
///
/// # Errors
/// The payload cannot be serialized, or what would come back is another one. The text names the place of the value, and quotes
/// none.
pub(crate) fn to_json<T: Serialize + ?Sized>(payload: &T) -> serde_json::Result<Vec<u8>> {
    const DEFAULT_LENGTH: usize = 128;
    let (mut json, mut notes) = (Vec::with_capacity(DEFAULT_LENGTH), Notes::default());
    let written = payload.serialize(&mut Serializer::with_formatter(&mut json, Noting(&mut notes)));
    if written.is_err() || notes.has_null {
        exact::check(payload).map_err(serde_json::Error::custom)?;
    }
    written?;
    not_too_deep(notes.deepest)?;
    Ok(json)
}

/// Checks a text that somebody else wrote.
///
/// # Errors
/// The text is not JSON, or is nested too deep.
pub(crate) fn check_json(json: &str) -> serde_json::Result<()> {
    serde_json::from_str::<serde::de::IgnoredAny>(json)?;
    let (mut notes, mut is_text, mut is_escaped) = (Notes::default(), false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true, // only within a text, or it would not be JSON
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => notes.opens(),
            b']' | b'}' if !is_text => notes.closes(),
            _ => {}
        }
    }
    not_too_deep(notes.deepest)
}

fn not_too_deep(deepest: usize) -> serde_json::Result<()> {
    if deepest > DEEPEST {
        let text = format!("it is nested {deepest} levels deep, and a decoder accepts {DEEPEST}");
        return Err(serde_json::Error::custom(text));
    }
    Ok(())
}

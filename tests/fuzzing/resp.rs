//! RESP, as a server answers it: values, read from bytes, changed, and written again.

use crate::draw::Draw;
use crate::grammar;

/// A value of RESP 2 or 3.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Its kind and its line: a simple text, an error, a number, null.
    Line(u8, Vec<u8>),
    /// Its kind and its bytes.
    Bytes(u8, Vec<u8>),
    /// Its kind and its parts; a map has two for each entry.
    Parts(u8, Vec<Answer>),
}

impl Answer {
    /// Reads the first value, and says how many bytes it has; `None` if they do not have all of it.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let (kind, line, next) = (bytes[0], &bytes[1..end], end + 2);
        let length = || std::str::from_utf8(line).ok()?.parse::<usize>().ok();
        match kind {
            b'$' | b'=' | b'!' if length().is_some() => {
                let length = length()?;
                let content = bytes.get(next..next + length)?;
                bytes.get(next + length + 1)?;
                Some((Self::Bytes(kind, content.to_vec()), next + length + 2))
            }
            b'*' | b'~' | b'>' | b'%' if length().is_some() => {
                let count = length()? * if kind == b'%' { 2 } else { 1 };
                let (mut parts, mut at) = (Vec::new(), next);
                for _ in 0..count {
                    let (part, length) = Self::read(&bytes[at..])?;
                    parts.push(part);
                    at += length;
                }
                Some((Self::Parts(kind, parts), at))
            }
            _ => Some((Self::Line(kind, line.to_vec()), next)),
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let head = |out: &mut Vec<u8>, kind: u8, line: &[u8]| {
            out.push(kind);
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        };
        match self {
            Self::Line(kind, line) => head(out, *kind, line),
            Self::Bytes(kind, bytes) => {
                head(out, *kind, bytes.len().to_string().as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Parts(kind, parts) => {
                let count = if *kind == b'%' { parts.len() / 2 } else { parts.len() };
                head(out, *kind, count.to_string().as_bytes());
                parts.iter().for_each(|part| part.write(out));
            }
        }
    }

    /// Changes one value somewhere in it.
    pub fn change(&mut self, draw: &Draw) {
        if let Self::Parts(kind, parts) = self
            && !parts.is_empty()
            && !draw.one_in(4)
        {
            let at = draw.below(parts.len() as u64) as usize;
            match draw.below(8) {
                0 if *kind != b'%' => drop(parts.remove(at)),
                1 if *kind != b'%' => parts.insert(at, parts[at].clone()),
                _ => parts[at].change(draw),
            }
            return;
        }
        *self = match draw.below(9) {
            0 => Self::Line(b'_', Vec::new()),
            1 => Self::Line(b'-', draw.pick(&["ERR why", "WRONGTYPE a key", "OOM", "READONLY no", "NOSCRIPT"]).into()),
            2 => Self::Line(b':', draw.number().to_string().into_bytes()),
            3 => Self::Line(b':', (draw.number() as i64).wrapping_neg().to_string().into_bytes()),
            4 => Self::Bytes(b'$', draw.number().to_string().into_bytes()),
            5 => Self::Bytes(b'$', grammar::record(draw)),
            6 => Self::Bytes(b'$', grammar::id(draw).into_bytes()),
            7 => Self::Bytes(b'$', draw.bytes(40)),
            _ => Self::Parts(b'*', Vec::new()),
        };
    }
}

//! Where replies of the Redis protocol begin in a stream of bytes.

/// Finds the first byte of each reply, whichever pieces the stream comes in. Knows RESP2 and RESP3.
#[derive(Debug, Default)]
pub(super) struct Replies {
    /// Values that the current reply still has; 0: the next byte begins a reply.
    values: u64,
    /// The first bytes of the current line: the type and a number.
    line: Vec<u8>,
    /// Bytes of the current text that are still to come.
    text: u64,
}

/// A type and a number have no more bytes than this; the rest of a longer line is text.
const MAX_HEAD: usize = 24;

impl Replies {
    /// Reads the next bytes of the stream, calls `begins` at each reply that begins among them, and stops where that returns
    /// true. Returns the number of bytes before that place, or of all.
    pub(super) fn read(&mut self, bytes: &[u8], mut begins: impl FnMut() -> bool) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.text > 0 {
                let passed = self.text.min((bytes.len() - at) as u64);
                self.text -= passed;
                at += passed as usize;
                continue;
            }
            if self.values == 0 {
                if begins() {
                    return at;
                }
                self.values = 1;
            }
            let byte = bytes[at];
            at += 1;
            if byte == b'\n' {
                self.end_of_line();
            } else if self.line.len() < MAX_HEAD {
                self.line.push(byte);
            }
        }
        at
    }

    /// A line is complete: a whole value, or the head of a text or of several values.
    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let number = || {
            let digits = line.get(1..).unwrap_or_default().split(|byte| *byte == b'\r').next().unwrap_or_default();
            std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok())
        };
        let more = match line.first() {
            Some(b'*' | b'~' | b'>') => number().unwrap_or(0),
            Some(b'%') => 2 * number().unwrap_or(0),
            Some(b'|') => 2 * number().unwrap_or(0) + 1,
            Some(b'$' | b'=' | b'!') => {
                self.text = number().map_or(0, |length| length + 2);
                0
            }
            _ => 0,
        };
        self.values = (self.values - 1).saturating_add(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "+OK\r\n:1\r\n$5\r\na\r\nb*\r\n*2\r\n*1\r\n$-1\r\n$0\r\n\r\n%1\r\n+k\r\n#t\r\n*0\r\n>2\r\n+a\r\n+b\r\n-ERR *3 no\r\n";
    const BEGIN: [usize; 8] = [0, 5, 9, 20, 39, 51, 55, 67];

    /// Where the n-th reply begins, counted from 0, when the stream comes in pieces of `size` bytes.
    fn place(n: usize, size: usize) -> Option<usize> {
        let (mut replies, mut left, mut at) = (Replies::default(), n, 0);
        for piece in STREAM.as_bytes().chunks(size) {
            let read = replies.read(piece, || {
                left = left.wrapping_sub(1);
                left == usize::MAX
            });
            at += read;
            if read < piece.len() {
                return Some(at);
            }
        }
        None
    }

    #[test]
    fn replies_begin_where_they_do_in_pieces_of_any_size() {
        for size in 1..=STREAM.len() {
            for (n, at) in BEGIN.into_iter().enumerate() {
                assert_eq!(place(n, size), Some(at), "reply {n} in pieces of {size}");
            }
            assert_eq!(place(BEGIN.len(), size), None, "there are no more");
        }
    }
}

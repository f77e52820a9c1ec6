//! Many strings in one, as `cmsgpack` packs a list of them in a script: read without a value of the client library and an allocation
//! for each.

use bytes::{Buf, Bytes};

use crate::job::Value;

/// A list of these values, as a script unpacks it.
pub(super) fn list_of(values: &[Value<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in [Value::List(values.len())].iter().chain(values) {
        value.put(&mut |more| bytes.extend_from_slice(more));
    }
    bytes
}

/// Packed strings, which a caller takes one by one.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: Bytes,
    left: usize,
}

impl Packed {
    /// The strings that are packed in these bytes; `None` if they do not begin with a list.
    pub(super) fn new(mut bytes: Bytes) -> Option<Self> {
        let mut rest = &*bytes;
        let Value::List(left) = Value::take(&mut rest)? else { return None };
        let head = bytes.len() - rest.len();
        bytes.advance(head);
        Some(Self { bytes, left })
    }

    /// How many are left.
    pub(super) const fn len(&self) -> usize {
        self.left
    }

    /// The next string, as a part of the whole: a caller that keeps it keeps all of them. `None` if the list ends too early.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.left = self.left.checked_sub(1)?;
        let mut rest = &*self.bytes;
        let Value::Text(text) = Value::take(&mut rest)? else { return None };
        let (length, head) = (text.len(), self.bytes.len() - text.len() - rest.len());
        self.bytes.advance(head);
        Some(self.bytes.split_to(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(packed: &[u8]) -> Option<Vec<Bytes>> {
        let mut strings = Packed::new(Bytes::copy_from_slice(packed))?;
        (0..strings.len()).map(|_| strings.next()).collect()
    }

    #[test]
    fn a_list_that_is_cut_or_has_other_values_is_refused() {
        let whole = [0xdc, 0, 2, 0xa1, b'a', 0xda, 0, 3, b'x', b'y', b'z'];
        assert_eq!(all(&whole).unwrap().len(), 2);
        assert!((0..whole.len()).all(|end| all(&whole[..end]).is_none()));
        for other in [0x00, 0x81, 0xc0, 0xcb, 0xff] {
            assert_eq!(all(&[other, 0xa1, b'a']), None);
            assert_eq!(all(&[0x91, other, b'a']), None);
        }
    }
}

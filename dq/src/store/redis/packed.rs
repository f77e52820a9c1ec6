//! Many strings in one, as `cmsgpack` packs a list of them in a script: read without a value of the client library and an allocation
//! for each.
//!
//! It is the part of [MessagePack](https://github.com/msgpack/msgpack/blob/master/spec.md) for lists of strings.

use bytes::{Buf, Bytes};

/// Packed strings, which a caller takes one by one.
#[derive(Debug)]
pub(super) struct Packed {
    bytes: Bytes,
    left: usize,
}

impl Packed {
    /// The strings that are packed in these bytes; `None` if they do not begin with a list.
    pub(super) fn new(mut bytes: Bytes) -> Option<Self> {
        let left = list_length(&mut bytes)?;
        Some(Self { bytes, left })
    }

    /// How many are left.
    pub(super) const fn len(&self) -> usize {
        self.left
    }

    /// The next string, as a part of the whole: a caller that keeps it keeps all of them. `None` if the list ends too early.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.left = self.left.checked_sub(1)?;
        let length = string_length(&mut self.bytes).filter(|length| *length <= self.bytes.len())?;
        Some(self.bytes.split_to(length))
    }
}

/// Reads the head of a list: how many values it has.
fn list_length(bytes: &mut Bytes) -> Option<usize> {
    Some(match bytes.try_get_u8().ok()? {
        short @ 0x90..=0x9f => usize::from(short & 0x0f),
        0xdc => usize::from(bytes.try_get_u16().ok()?),
        0xdd => bytes.try_get_u32().ok()? as usize,
        _ => return None,
    })
}

/// Reads the head of a string: how many bytes it has.
fn string_length(bytes: &mut Bytes) -> Option<usize> {
    Some(match bytes.try_get_u8().ok()? {
        short @ 0xa0..=0xbf => usize::from(short & 0x1f),
        0xd9 => usize::from(bytes.try_get_u8().ok()?),
        0xda => usize::from(bytes.try_get_u16().ok()?),
        0xdb => bytes.try_get_u32().ok()? as usize,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(packed: &[u8]) -> Option<Vec<Bytes>> {
        let mut strings = Packed::new(Bytes::copy_from_slice(packed))?;
        (0..strings.len()).map(|_| strings.next()).collect()
    }

    #[test]
    fn strings_of_each_length_are_read() {
        let mut packed = vec![0xdc, 0, 5, 0xa1, b'a', 0xa0];
        packed.extend([0xd9, 40].into_iter().chain([b'b'; 40]));
        packed.extend([0xda, 1, 0].into_iter().chain([b'c'; 256]));
        packed.extend([0xdb, 0, 1, 0, 0].into_iter().chain([0xff; 65_536]));
        let lengths: Vec<_> = all(&packed).unwrap().iter().map(Bytes::len).collect();
        assert_eq!(lengths, [1, 0, 40, 256, 65_536]);
        assert_eq!(all(&[0x92, 0xa1, b'a', 0xa1, b'b']).unwrap(), [&b"a"[..], b"b"]);
        assert!(all(&[0xdd, 0, 0, 0, 0]).unwrap().is_empty());
    }

    #[test]
    fn a_list_that_is_cut_or_has_other_values_is_refused() {
        let whole = [0xdc, 0, 2, 0xa1, b'a', 0xda, 0, 3, b'x', b'y', b'z'];
        assert_eq!(all(&whole).unwrap().len(), 2);
        for end in 0..whole.len() {
            assert_eq!(all(&whole[..end]), None);
        }
        for other in [0x00, 0x81, 0xc0, 0xcb, 0xff] {
            assert_eq!(all(&[other, 0xa1, b'a']), None);
            assert_eq!(all(&[0x91, other, b'a']), None);
        }
    }
}

//! The part of [MessagePack](https://github.com/msgpack/msgpack/blob/master/spec.md) that stores keep: lists of whole numbers, texts and flags,
//! each in its shortest form, as `cmsgpack` packs them in a script.

use bytes::Buf;

/// A value, borrowed from the bytes in which it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A whole number that is not negative.
    Number(u64),
    /// Bytes that need not be UTF-8.
    Text(&'a [u8]),
    /// `true` or `false`.
    Flag(bool),
    /// How many values it has, which follow.
    List(usize),
}

impl<'a> Value<'a> {
    /// Takes the first value from the bytes; `None` if they are cut, or it is none of these.
    pub fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let first = bytes.try_get_u8().ok()?;
        let size = |bytes: &mut &[u8], of: usize| bytes.try_get_uint(of).ok();
        Some(match first {
            0x00..=0x7f => Self::Number(first.into()),
            0xcc => Self::Number(size(bytes, 1)?),
            0xcd => Self::Number(size(bytes, 2)?),
            0xce => Self::Number(size(bytes, 4)?),
            0xcf => Self::Number(size(bytes, 8)?),
            0xa0..=0xbf => Self::text(bytes, u64::from(first & 0x1f))?,
            0xd9 => size(bytes, 1).and_then(|length| Self::text(bytes, length))?,
            0xda => size(bytes, 2).and_then(|length| Self::text(bytes, length))?,
            0xdb => size(bytes, 4).and_then(|length| Self::text(bytes, length))?,
            0xc2 | 0xc3 => Self::Flag(first == 0xc3),
            0x90..=0x9f => Self::List(usize::from(first & 0x0f)),
            0xdc => Self::List(size(bytes, 2)? as usize),
            0xdd => Self::List(size(bytes, 4)? as usize),
            _ => return None,
        })
    }

    fn text(bytes: &mut &'a [u8], length: u64) -> Option<Self> {
        let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        *bytes = rest;
        Some(Self::Text(text))
    }

    /// Writes the value; of a list only how many values follow.
    pub fn put(self, out: &mut impl FnMut(&[u8])) {
        let mut sized = |first: u8, number: u64, size: usize| {
            out(&[first]);
            out(&number.to_be_bytes()[8 - size..]);
        };
        match self {
            Self::Number(number @ ..0x80) => out(&[number as u8]),
            Self::Number(number @ ..0x100) => sized(0xcc, number, 1),
            Self::Number(number @ ..0x1_0000) => sized(0xcd, number, 2),
            Self::Number(number @ ..0x1_0000_0000) => sized(0xce, number, 4),
            Self::Number(number) => sized(0xcf, number, 8),
            Self::Text(text) => {
                match text.len() {
                    length @ ..0x20 => out(&[0xa0 | length as u8]),
                    length @ ..0x100 => sized(0xd9, length as u64, 1),
                    length @ ..0x1_0000 => sized(0xda, length as u64, 2),
                    length => sized(0xdb, length as u64, 4),
                }
                out(text);
            }
            Self::Flag(flag) => out(&[0xc2 | u8::from(flag)]),
            Self::List(count @ ..0x10) => out(&[0x90 | count as u8]),
            Self::List(count @ ..0x1_0000) => sized(0xdc, count as u64, 2),
            Self::List(count) => sized(0xdd, count as u64, 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(value: Value<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.put(&mut |more| bytes.extend_from_slice(more));
        bytes
    }

    #[test]
    fn values_of_each_size_read_back_in_their_shortest_form() {
        let numbers = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]).chain([u64::MAX]);
        for number in numbers {
            let bytes = bytes_of(Value::Number(number));
            let shortest =
                [(128, 1), (1 << 8, 2), (1 << 16, 3), (1 << 32, 5)].into_iter().find(|(end, _)| number < *end);
            assert_eq!(bytes.len(), shortest.map_or(9, |(_, length)| length), "{number}");
            assert_eq!(Value::take(&mut &*bytes), Some(Value::Number(number)));
        }
        for (length, head) in [(0, 1), (31, 1), (32, 2), (255, 2), (256, 3), (65_535, 3), (65_536, 5)] {
            let text = vec![0xff; length];
            let bytes = bytes_of(Value::Text(&text));
            assert_eq!((bytes.len(), Value::take(&mut &*bytes)), (head + length, Some(Value::Text(&text))));
        }
        for (count, head) in [(0, 1), (15, 1), (16, 3), (65_535, 3), (65_536, 5)] {
            let bytes = bytes_of(Value::List(count));
            assert_eq!((bytes.len(), Value::take(&mut &*bytes)), (head, Some(Value::List(count))));
        }
    }

    #[test]
    fn what_is_cut_or_of_another_kind_is_no_value() {
        let text = bytes_of(Value::Text(&[b'x'; 300]));
        for end in 0..text.len() {
            assert_eq!(Value::take(&mut &text[..end]), None, "cut at {end}");
        }
        for first in [0x80, 0xc0, 0xc1, 0xc4, 0xc7, 0xca, 0xcb, 0xd0, 0xd3, 0xd4, 0xde, 0xdf, 0xe0, 0xff] {
            assert_eq!(Value::take(&mut &[first, 0, 0, 0, 0, 0, 0, 0, 0][..]), None, "{first:#x}");
        }
    }
}

//! The id of a job: the caller chooses it, or dq generates it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use dq_grammar::{BadName, check_id};

/// The id of a job within its topic: 1 to 256 bytes of text without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Arc<str>);

/// The alphabet of generated ids: 64 characters that are safe in URLs, in the order of their bytes.
const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

impl JobId {
    /// Makes an id.
    ///
    /// # Errors
    /// [`BadName`] if the text is empty, is longer than 256 bytes or has a control character.
    pub fn new(id: impl AsRef<str>) -> Result<Self, BadName> {
        let id = id.as_ref();
        check_id(id)?;
        Ok(Self(id.into()))
    }

    /// Generates an id of 20 characters. As texts, ids sort by `ms`, then by `count`.
    ///
    /// It holds 48 bits of `ms`, 16 bits of `count` (the number within the millisecond) and 56 bits of `random`.
    #[doc(hidden)]
    pub fn generated(ms: u64, count: u16, random: u64) -> Self {
        let bits = (u128::from(ms) & 0xFFFF_FFFF_FFFF) << 72 | u128::from(count) << 56 | u128::from(random >> 8);
        let text: [u8; 20] = std::array::from_fn(|i| ALPHABET[(bits >> (114 - 6 * i)) as usize & 63]);
        Self(std::str::from_utf8(&text).expect("the alphabet is ASCII").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for JobId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_sort_in_order_of_creation() {
        let ids: Vec<_> = [(1, 0, u64::MAX), (1, 1, 0), (2, 0, 0), (1 << 47, 0, 0)]
            .map(|(ms, count, random)| JobId::generated(ms, count, random))
            .into();
        assert!(ids.is_sorted());
        assert!(ids.iter().all(|id| id.as_str().len() == 20));
    }
}

//! The id of a job: the caller chooses it, or dq generates it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use dq_grammar::{InvalidName, check_id};
use smol_str::SmolStr;

/// What the ids of schedules begin with.
pub(crate) const SCHEDULE_PREFIX: &str = "dq:schedule:";

/// The id of a job within its topic: 1 to 256 bytes of text without control characters.
///
/// Cheap to clone. One of up to 23 bytes, as every generated id is, needs no memory of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobId(SmolStr);

/// The alphabet of generated ids: 64 characters that are safe in URLs, in the order of their bytes.
const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

/// Ticks of generated ids have 44 bits, origins 40.
const LAST_TICK: u64 = (1 << 44) - 1;
const LAST_ORIGIN: u64 = (1 << 40) - 1;

impl JobId {
    /// Makes an id.
    ///
    /// # Errors
    /// [`InvalidName`] if the text is empty, is longer than 256 bytes or has a control character.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidName> {
        let id = id.as_ref();
        check_id(id)?;
        Ok(Self(id.into()))
    }

    /// The name of the schedule that the job keeps; `None` if it is an ordinary job (rule 30).
    pub(crate) fn schedule_name(&self) -> Option<&str> {
        self.as_str().strip_prefix(SCHEDULE_PREFIX)
    }

    /// Generates an id of 14 characters: 44 bits of `tick`, then 40 bits of `origin`. As texts, the ids sort by `tick`.
    ///
    /// An `add` does not look whether a generated id is known, so no two jobs may ever have the same one. An origin is drawn
    /// at random, one for each [`Environment`](crate::environment::Environment), which never uses a tick twice. So two ids can
    /// be equal only if two environments drew the same origin and reach the same tick. That two given environments share an
    /// origin has a probability of 2⁻⁴⁰, about 10⁻¹². With 1,000 environments at any time, one of them restarted every
    /// minute, it happens to any two that live at the same time once in 2,000 years. (A copy of a running process, by `fork` or
    /// from the snapshot of a machine, has the origin of the first.)
    ///
    /// The length is no accident: with header and terminator, Redis keeps up to 14 characters in 16 bytes.
    #[doc(hidden)]
    pub fn generated(tick: u64, origin: u64) -> Self {
        let bits = u128::from(tick & LAST_TICK) << 40 | u128::from(origin & LAST_ORIGIN);
        let text: [u8; 14] = std::array::from_fn(|i| ALPHABET[(bits >> (78 - 6 * i)) as usize & 63]);
        Self(SmolStr::new_inline(std::str::from_utf8(&text).expect("the alphabet is ASCII")))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// As texts. The first eight bytes, which nearly always decide between generated ids, are compared at once.
impl Ord for JobId {
    fn cmp(&self, other: &Self) -> Ordering {
        let (ours, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        match (ours.first_chunk(), theirs.first_chunk()) {
            (Some(a), Some(b)) => u64::from_be_bytes(*a).cmp(&u64::from_be_bytes(*b)).then_with(|| ours.cmp(theirs)),
            _ => ours.cmp(theirs),
        }
    }
}

impl PartialOrd for JobId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn generated_ids_sort_by_tick_and_fit_into_16_bytes_of_redis() {
        let ids: Vec<_> = [(0, u64::MAX), (1, 0), (1, 1), (2, 0), (1 << 43, 0), (LAST_TICK, LAST_ORIGIN)]
            .map(|(tick, origin)| JobId::generated(tick, origin))
            .into();
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert!(ids.iter().all(|id| id.as_str().len() == 14));
    }

    #[test]
    fn ids_sort_as_texts() {
        let texts = [
            "a",
            "abcdefg",
            "abcdefgh",
            "abcdefgh0",
            "abcdefghi",
            "abcdefgi",
            "b",
            "~",
            "ä",
            "äbcdefgh",
            "€uro and more",
        ];
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (*a, *b))) {
            assert_eq!(JobId::new(a).unwrap().cmp(&JobId::new(b).unwrap()), a.cmp(b), "{a} {b}");
        }
    }

    #[test]
    fn every_bit_of_tick_and_origin_is_in_the_id() {
        let bits = (0..44).map(|bit| (1 << bit, 0)).chain((0..40).map(|bit| (0, 1 << bit)));
        let ids: BTreeSet<_> = bits.chain([(0, 0)]).map(|(tick, origin)| JobId::generated(tick, origin)).collect();
        assert_eq!(ids.len(), 85);
    }
}

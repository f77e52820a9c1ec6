//! Positions, and the names of files.

use super::header::Holds;

/// A place in the journal: the bytes of all segments before it.
pub use crate::store::memory::Position;

/// The file that names the process which uses the directory.
pub const LOCK: &str = "LOCK";

/// No journal comes here within a thousand years of writing, so no sum overflows.
const LAST: u64 = 1 << 62;

/// What a file of the directory is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileName {
    /// A segment, and the position of its first byte.
    Segment(u64),
    /// A snapshot, and the position where it began.
    Snapshot(u64),
    /// A watermark, and the first position of a segment: that was durable when the watermark was made.
    Watermark(u64),
    /// A file that was being made.
    Unfinished,
    /// None of the journal's.
    Other,
    /// Named almost like one of the journal's.
    Foreign,
}

impl FileName {
    pub(super) fn of(name: &str) -> Self {
        let kinds = [
            ("journal-", Self::Segment as fn(u64) -> Self),
            ("snapshot-", Self::Snapshot),
            ("newest-", Self::Watermark),
        ];
        let found = kinds.into_iter().find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, kind)));
        let Some((rest, kind)) = found else { return Self::Other };
        let number = |digits: &str| {
            let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
            let number = is_number.then(|| digits.parse::<u64>().ok()).flatten();
            number.filter(|number| *number <= LAST)
        };
        if rest.strip_suffix(".new").and_then(number).is_some() {
            return Self::Unfinished;
        }
        rest.strip_suffix(".dq").and_then(number).map_or(Self::Foreign, kind)
    }

    /// The name of a file that holds this from there on.
    pub(super) fn holding(holds: Holds, first: u64) -> String {
        match holds {
            Holds::Journal => Self::segment(first),
            Holds::Snapshot => Self::snapshot(first),
        }
    }

    /// The name of a segment.
    pub(super) fn segment(first: u64) -> String {
        format!("journal-{first:020}.dq")
    }

    /// The name of a snapshot.
    pub(super) fn snapshot(begin: u64) -> String {
        format!("snapshot-{begin:020}.dq")
    }

    /// The name of the watermark of a segment.
    pub(super) fn watermark(first: u64) -> String {
        format!("newest-{first:020}.dq")
    }

    /// The name of a file until it is complete.
    pub(super) fn unfinished(name: &str) -> String {
        name.trim_end_matches(".dq").to_owned() + ".new"
    }
}

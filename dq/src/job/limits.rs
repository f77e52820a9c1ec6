//! The limits of the format: one table, and the checks that every door of a store makes by it.
//!
//! They bound what a record may be, wherever it comes from: an add, a change, an import, a file, a server or a signal. A setting such
//! as `payload_limit` is tighter, may be lowered at any time, and concerns only what a program sends.

use std::time::Duration;

use dq_grammar::{LONGEST_DELAY, LONGEST_ID, LONGEST_SCHEDULE, SHORTEST_INTERVAL};

use super::ident::Fence;
use super::metadata::{BadRecord, Metadata};
use super::record::Record;
use super::state::State;

/// A limit of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// Its name in the table.
    pub name: &'static str,
    /// What is bounded, as errors name it.
    pub what: &'static str,
    /// The least that is allowed.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
}

/// Something is over a limit of the format, or under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {size}; the limit is {limit}")]
#[non_exhaustive]
pub struct OverLimit {
    /// What it is.
    pub what: &'static str,
    /// Its size.
    pub size: u64,
    /// The limit that it breaks.
    pub limit: u64,
}

impl Limit {
    /// Checks a size.
    ///
    /// # Errors
    /// [`OverLimit`] if it is above the most or below the least that is allowed.
    pub const fn check(self, size: u64) -> Result<(), OverLimit> {
        let limit = if size < self.least { self.least } else { self.most };
        if size < self.least || size > self.most {
            return Err(OverLimit { what: self.what, size, limit });
        }
        Ok(())
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])+ $name:ident $what:literal $least:expr, $most:expr;)+) => {
        $($(#[$doc])+ pub const $name: Limit =
            Limit { name: stringify!($name), what: $what, least: $least, most: $most };)+

        /// Every limit.
        pub const ALL: &[Limit] = &[$($name),+];
    };
}

limits! {
    /// The payload of a job, in bytes: the largest value of the setting `payload_limit`.
    PAYLOAD "the size of the payload in bytes" 0, 16 << 20;
    /// Names and values of all headers, in bytes, with 4 for each header.
    HEADERS "the size of the headers in bytes, with 4 for each header," 0, 8 << 10;
    /// NUL, CR, LF and ESC in the names and values of headers. A record in a store may have them.
    CONTROLS "the number of NUL, CR, LF and ESC in the headers" 0, 0;
    /// The retry policy of a job as text, in bytes.
    RETRY "the length of the retry policy in bytes" 0, 4 << 10;
    /// The last error of a job, in bytes.
    ERROR "the length of the error text in bytes" 0, 4 << 10;
    /// The id of a job, in bytes.
    ID "the length of the id in bytes" 1, LONGEST_ID as u64;
    /// The name of a schedule, in bytes.
    SCHEDULE_NAME "the length of the schedule's name in bytes" 1, LONGEST_SCHEDULE as u64;
    /// The payload of the jobs of a schedule, in bytes. The record of the schedule has it as base64, and is a record itself.
    SCHEDULE_PAYLOAD "the size of the schedule's payload in bytes" 0, 8 << 20;
    /// The interval of a schedule, in ms.
    INTERVAL "the interval of the schedule in ms" ms(SHORTEST_INTERVAL), ms(LONGEST_DELAY);
    /// A fence, in µs since the Unix epoch: the year 2112. Only an import is refused for it, because every store calculates exactly with
    /// fences that are twice as large (rule 9).
    FENCE "the fence" 0, 1 << 52;
    /// A time or a period in a record, in ms.
    TIME "a time in ms" 0, (1 << 48) - 1;
}

const fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

impl Metadata {
    /// Checks the texts. [`decode`](Self::decode) calls it, so it holds for whatever comes out of a store.
    pub(super) fn check_texts(&self) -> Result<(), OverLimit> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
        HEADERS.check(self.headers_length())?;
        RETRY.check(length(&self.retry))?;
        ERROR.check(length(&self.error))
    }

    /// What the headers count.
    pub(super) fn headers_length(&self) -> u64 {
        self.headers.iter().map(|(name, value)| 4 + name.len() as u64 + value.len() as u64).sum()
    }

    /// Checks what a caller has chosen: the sizes, and that no header has a character that acts on a terminal or ends a line of
    /// a log or of a protocol.
    ///
    /// # Errors
    /// [`OverLimit`].
    #[doc(hidden)]
    pub fn check_new(&self) -> Result<(), OverLimit> {
        self.check_texts()?;
        let texts = self.headers.iter().flat_map(|(name, value)| [name, value]);
        let controls = texts.flat_map(|text| text.bytes()).filter(|byte| b"\0\r\n\x1b".contains(byte));
        CONTROLS.check(controls.count() as u64)
    }
}

impl Record {
    /// Reads the metadata of a record that a store had, and checks all of it.
    ///
    /// # Errors
    /// [`BadRecord`] if this version of dq cannot read the record, or if it is over a limit of the format.
    #[doc(hidden)]
    pub fn checked(&self) -> Result<Metadata, BadRecord> {
        let metadata = self.metadata()?;
        PAYLOAD.check(self.payload_length())?;
        Ok(metadata)
    }

    /// Why no node would run a job with this record because of a limit; a DEAD job has its payload for people.
    pub(crate) fn over_limit(&self, state: State) -> Option<OverLimit> {
        let checked = if state == State::Dead { self.metadata() } else { self.checked() };
        match checked {
            Err(BadRecord::OverLimit(over)) => Some(over),
            _ => None,
        }
    }

    /// Checks a record that comes into a store. One that this version of dq cannot read may: an export keeps what another one wrote.
    ///
    /// # Errors
    /// [`OverLimit`].
    #[doc(hidden)]
    pub fn check_new(&self) -> Result<(), OverLimit> {
        match self.checked() {
            Ok(metadata) => metadata.check_new(),
            Err(BadRecord::OverLimit(over)) => Err(over),
            Err(_) => PAYLOAD.check(self.as_bytes().len() as u64),
        }
    }
}

impl Fence {
    /// The fence after this one at `micros`, the clock of the store (rule 9). Fences grow as long as every store can calculate with them
    /// exactly. What comes after that follows the clock, so that runs keep different fences.
    pub(crate) const fn next_at(self, micros: u64) -> Self {
        if self.0 >= micros && self.0 < Self::LAST.0 { Self(self.0 + 1) } else { Self(micros) }
    }

    /// The largest fence with which every store calculates exactly.
    pub(crate) const LAST: Self = Self((1 << 53) - 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Codec;

    #[test]
    fn a_limit_holds_at_both_ends() {
        for limit in ALL {
            assert_eq!((limit.check(limit.least), limit.check(limit.most)), (Ok(()), Ok(())), "{limit:?}");
            assert!(limit.check(limit.most + 1).is_err(), "{limit:?}");
            assert!(limit.least == 0 || limit.check(limit.least - 1).is_err(), "{limit:?}");
        }
        let over = INTERVAL.check(1).unwrap_err().to_string();
        assert_eq!(over, "the interval of the schedule in ms is 1; the limit is 1000");
    }

    /// The encoder is total: what no door lets in loses the text that is too long, and nothing else.
    #[test]
    fn metadata_over_a_limit_become_bytes_without_that_text() {
        let long = |length: usize| "x".repeat(length);
        let over = [
            Metadata { headers: vec![("a".into(), long(65_000))], ..Metadata::default() },
            Metadata { retry: Some(long(70_000)), ..Metadata::default() },
            Metadata { headers: vec![(long(5_000), long(5_000)), (long(1 << 20), long(5))], ..Metadata::default() },
        ];
        for metadata in over {
            let metadata = Metadata { attempts: 3, error: Some("boom".into()), ..metadata };
            let read = Record::new(&metadata, Codec::Json, b"1").metadata();
            assert_eq!(read, Ok(Metadata { headers: Vec::new(), retry: None, ..metadata }));
        }
        let error = Some("é".repeat(5_000));
        let read = Record::new(&Metadata { error, ..Metadata::default() }, Codec::Json, b"1").metadata().unwrap();
        assert_eq!(read.error, Some("é".repeat(2_048)));
        let at_the_limits = Metadata {
            headers: vec![(long(4_000), long((8 << 10) - 4_004))],
            retry: Some(long(4 << 10)),
            error: Some(long(4 << 10)),
            ..Metadata::default()
        };
        assert_eq!(Record::new(&at_the_limits, Codec::Json, b"1").metadata(), Ok(at_the_limits));
    }

    #[test]
    fn fences_grow_up_to_the_last_exact_number_and_then_follow_the_clock() {
        let last = (1 << 53) - 1;
        let next = |fence, micros| Fence(fence).next_at(micros).0;
        assert_eq!((next(5, 9), next(9, 9), next(1 << 52, 9)), (9, 10, (1 << 52) + 1));
        assert_eq!((next(last - 1, 9), next(last, 9), next(u64::MAX, 9)), (last, 9, 9));
    }
}

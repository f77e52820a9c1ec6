//! The limits of the format: one table, and the checks that every door of a store makes by it.
//!
//! They bound what a record may be, wherever it comes from: an add, a change, an import, a file, a server or a signal. A setting such
//! as `max_payload` is tighter, may be lowered at any time, and concerns only what a program sends.

use std::time::Duration;

use dq_grammar::{MAX_DELAY, MAX_ID, MAX_SCHEDULE, MAX_UNIQUE, MIN_INTERVAL};

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
    /// The most that a door lets in.
    pub most: u64,
    /// How much more than that steps may make of it. So what a store has made of what it let in breaks no limit, and its export can be
    /// imported.
    pub room: u64,
}

/// The room of a number that grows with each step, in µs or by one: 12 days, or 10^12 steps.
const ROOM: u64 = 1 << 40;

/// The last number of those that follow the clock in µs: the year 2112. Every store calculates exactly with numbers that are twice as large.
const LAST_NUMBER: u64 = 1 << 52;

/// Something is over a limit of the format, or under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {size}; the {} is {limit}", if .size < .limit { "least" } else { "limit" })]
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
    /// Checks what comes in.
    ///
    /// # Errors
    /// [`OverLimit`] if it is above the most or below the least that is allowed.
    pub const fn check(self, size: u64) -> Result<(), OverLimit> {
        self.up_to(size, self.most)
    }

    /// Checks what a store has: a journal, a server, or an entry of an outbox.
    ///
    /// # Errors
    /// [`OverLimit`] if no step makes so much of what a door lets in.
    pub const fn check_kept(self, size: u64) -> Result<(), OverLimit> {
        self.up_to(size, self.last())
    }

    /// The most that a store has.
    pub const fn last(self) -> u64 {
        self.most + self.room
    }

    const fn up_to(self, size: u64, most: u64) -> Result<(), OverLimit> {
        let limit = if size < self.least { self.least } else { most };
        if size < self.least || size > most {
            return Err(OverLimit { what: self.what, size, limit });
        }
        Ok(())
    }
}

macro_rules! limits {
    ($($(#[$doc:meta])+ $name:ident $what:literal $least:expr, $most:expr $(, room $room:expr)?;)+) => {
        $($(#[$doc])+ pub const $name: Limit =
            Limit { name: stringify!($name), what: $what, least: $least, most: $most, room: 0 $(+ $room)? };)+

        /// Every limit.
        pub const ALL: &[Limit] = &[$($name),+];
    };
}

limits! {
    /// The payload of a job, in bytes: the largest value of the setting `max_payload`.
    PAYLOAD "the size of the payload in bytes" 0, 16 << 20;
    /// Names and values of all headers, in bytes, with 4 for each header.
    HEADERS "the size of the headers in bytes, with 4 for each header," 0, 8 << 10;
    /// NUL, CR, LF and ESC in the names and values of headers. A record in a store may have them.
    CONTROLS "the number of NUL, CR, LF and ESC in the headers" 0, 0;
    /// The retry policy of a job as text, in bytes.
    RETRY "the length of the retry policy in bytes" 0, 4 << 10;
    /// The last error of a job, in bytes.
    ERROR "the length of the error in bytes" 0, 4 << 10;
    /// The state that a run leaves for the next one, in bytes.
    STATE "the size of the state in bytes" 0, 64 << 10;
    /// The id of a job, in bytes.
    ID "the length of the id in bytes" 1, MAX_ID as u64;
    /// The name of a schedule, in bytes.
    SCHEDULE_NAME "the length of the schedule's name in bytes" 1, MAX_SCHEDULE as u64;
    /// The payload of the jobs of a schedule, in bytes. The record of the schedule has it as base64, and is a record itself.
    SCHEDULE_PAYLOAD "the size of the schedule's payload in bytes" 0, 8 << 20;
    /// The interval of a schedule, in ms.
    INTERVAL "the interval of the schedule in ms" ms(MIN_INTERVAL), ms(MAX_DELAY);
    /// A fence, in µs since the Unix epoch (rule 9).
    FENCE "the fence" 0, LAST_NUMBER - ROOM, room ROOM;
    /// The position of a follow-up in the outbox of its source, in µs since the Unix epoch (rule 18).
    POSITION "the position of the follow-up" 1, LAST_NUMBER - ROOM, room ROOM;
    /// The order of a job among those of its group, in µs since the Unix epoch (rule 4).
    ORDER "the order of the job in its group" 0, LAST_NUMBER - ROOM, room ROOM;
    /// When a new job is due, in ms since the Unix epoch: the year 2109. No change moves a job beyond it (rule 28).
    DUE "the due time in ms" 0, 1 << 42;
    /// How long after a step a new job is due, or after its due time it expires, in ms.
    DELAY "the delay in ms" 0, ms(MAX_DELAY);
    /// For how long the id of a new job stays taken, in ms (rule 18).
    UNIQUE "the time for which the id stays taken in ms" 0, ms(MAX_UNIQUE);
    /// As how many jobs may wait, with which a new job comes.
    WAITING "the number of jobs that may wait" 1, 1_000_000_000;
    /// A time or a period in a record, in ms.
    TIME "a time in ms" 0, (1 << 48) - 1;
}

const fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// The beginning of a text, of at most so many bytes, which ends with a character.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_at_both_ends() {
        for limit in ALL {
            assert_eq!((limit.check(limit.least), limit.check(limit.most)), (Ok(()), Ok(())), "{limit:?}");
            assert!(limit.check(limit.most + 1).is_err(), "{limit:?}");
            assert_eq!(limit.check_kept(limit.last()), Ok(()), "{limit:?}");
            assert!(limit.check_kept(limit.last() + 1).is_err(), "{limit:?}");
            assert!(limit.least == 0 || limit.check(limit.least - 1).is_err(), "{limit:?}");
        }
        let over = INTERVAL.check(1).unwrap_err().to_string();
        assert_eq!(over, "the interval of the schedule in ms is 1; the least is 1000");
    }
}

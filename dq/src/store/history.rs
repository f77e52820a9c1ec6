//! The histories of jobs: what a topic keeps of the moves of each job (rule 31).
//!
//! A history is text, a line for each move: its letter and what belongs to it, the clock of the step, a time and a name, with tabs
//! between them. All stores keep the same text.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::moves::Transition;
use crate::time::{Timestamp, ceil_millis};

/// The most moves that a topic can keep of a job.
pub const MAX_HISTORY: usize = 100;

/// About the most bytes of a history: of more, the newest that fit are kept, and the last one in any case.
pub const HISTORY_BYTES: usize = 4 << 10;

/// The longest time for which a history is kept after the end of its job.
pub const MAX_HISTORY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many histories of jobs that are gone a topic keeps at most. It forgets those first that it would have forgotten first anyway.
pub const MAX_ENDED_HISTORIES: usize = 100_000;

/// The moves of a job that its topic has kept, oldest first, and when each was made.
pub type JobHistory = Vec<(Timestamp, Transition)>;

/// What a topic keeps of the histories of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HistorySetting {
    /// How many moves of a job, the newest; at most [`MAX_HISTORY`]. Zero: the topic keeps no histories, and forgets those that
    /// it has.
    pub moves: usize,
    /// For how long after the end of a job, in whole milliseconds; at most [`MAX_HISTORY_RETENTION`]. Zero: the history goes with
    /// the job.
    pub after: Duration,
}

impl HistorySetting {
    /// Refuses what is over the limits before anything is done.
    pub(crate) fn check(self) -> Result<Self, StoreError> {
        let over = |what, size, limit| Err(StoreError::OverLimit { what, size, limit });
        let (after, longest) = (self.after.as_secs() as usize, MAX_HISTORY_RETENTION.as_secs() as usize);
        if self.moves > MAX_HISTORY {
            return over("the number of moves of a history", self.moves, MAX_HISTORY);
        }
        if self.after > MAX_HISTORY_RETENTION {
            return over("the time in seconds for which a history is kept", after, longest);
        }
        Ok(Self { after: ceil_millis(self.after), ..self })
    }
}

/// Adds a move to a history, and drops the oldest ones that it has no room for.
pub(crate) fn append(history: &mut String, at: Timestamp, made: &Transition, most: usize) {
    let text = made.written();
    let (kind, rest) = text.split_once('\t').unwrap_or((&text, ""));
    history.push_str(&format!("{kind}\t{}\t{rest}\n", at.as_millis()));
    let mut lines = history.matches('\n').count();
    let mut from = 0;
    while lines > 1 && (lines > most || history.len() - from > HISTORY_BYTES) {
        from += history[from..].find('\n').map_or(0, |end| end + 1);
        lines -= 1;
    }
    history.drain(..from);
}

/// The moves of a history, oldest first. A line that another version wrote is left out.
pub(crate) fn read(history: &str) -> JobHistory {
    history.lines().filter_map(read_line).collect()
}

fn read_line(line: &str) -> Option<(Timestamp, Transition)> {
    let mut fields = line.splitn(4, '\t');
    let (kind, at, time, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some((Timestamp::from_millis(at.parse().ok()?), Transition::read(kind, time, name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_history_is_bounded_in_bytes_and_keeps_the_last_move() {
        let mut history = String::new();
        let by = |letter: char| Transition::Deleted { by: letter.to_string().repeat(1_500) };
        for letter in ['a', 'b', 'c', 'd'] {
            append(&mut history, at(1), &by(letter), 100);
            assert!(history.len() <= HISTORY_BYTES, "{}", history.len());
        }
        assert_eq!(read(&history), [(at(1), by('c')), (at(1), by('d'))]);
        append(&mut history, at(2), &Transition::Deleted { by: "x".repeat(5_000) }, 100);
        assert_eq!(read(&history).len(), 1);
    }

    #[test]
    fn lines_of_another_version_are_left_out() {
        assert_eq!(
            read("?\t1\t\t\na\t1\t2\t\nk\n\nz\t3\t\t\n"),
            [(at(1), Transition::Added { due: at(2) }), (at(3), Transition::Dropped),]
        );
    }

    #[test]
    fn a_part_of_a_millisecond_after_the_end_counts_as_a_whole_one() {
        let part = HistorySetting { moves: 1, after: Duration::from_micros(1_500) };
        assert_eq!(part.check().unwrap().after, Duration::from_millis(2));
    }
}

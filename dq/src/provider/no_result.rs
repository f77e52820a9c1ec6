//! Why a wait for the result of a job ends without one.

use std::fmt;
use std::time::Duration;

use crate::job::{Cause, InvalidRecord, JobState, StateError};

/// Why a wait for a result ends without one, in [`CallError::NoResult`](super::CallError::NoResult).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoResult {
    /// There is no job with this id: it was never added, or it has ended and was not kept, or not any more.
    Unknown,
    /// It was acked, and left no result.
    Acked,
    /// It was deleted or cancelled while the caller waited.
    Deleted,
    /// It is DEAD. If it is requeued, another call waits for it.
    Dead {
        /// Why.
        cause: Option<Cause>,
        /// Its last error; `None` if it quotes the payload.
        error: Option<String>,
    },
    /// It was there while the caller waited, and is gone. How it ended is not known.
    Gone,
    /// The time is over, and the job has not ended.
    TimeOver {
        /// How long the caller waited.
        waited: Duration,
        /// Where the job is now.
        place: JobState,
    },
    /// The result is not of the requested type.
    Decode(StateError),
    /// This version of dq cannot read what the store has kept of the job.
    Unreadable(InvalidRecord),
}

/// What became of the job, and what to do.
impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(
                "there is no job with this id: it was never added, or it has ended and is not kept any more; a longer `retain` keeps it",
            ),
            Self::Acked => f.write_str("it was acked without a result; `Channel::ack_with` leaves one"),
            Self::Deleted => f.write_str("it was deleted or cancelled"),
            Self::Dead { cause, error } => {
                f.write_str("it is DEAD")?;
                if let Some(cause) = cause {
                    write!(f, " ({cause})")?;
                }
                if let Some(error) = error {
                    write!(f, ": {error}")?;
                }
                f.write_str("; `requeue` runs it again")
            }
            Self::Gone => f.write_str("it is gone, and it is not known how it ended; add it with a `retain` that keeps it"),
            Self::TimeOver { waited, place } => {
                let waited = humantime::format_duration(*waited);
                write!(f, "after {waited} it is {}; call again to wait longer", place.state())
            }
            Self::Decode(error) => error.fmt(f),
            Self::Unreadable(bad) => write!(f, "this version of dq cannot read what is kept of it: {bad}"),
        }
    }
}

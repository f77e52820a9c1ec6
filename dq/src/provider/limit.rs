//! How long a call may take, if it says so itself.

use std::time::Duration;

use humantime::format_duration;

use crate::time::{BadDuration, Delay};

/// The shortest and the longest time that a call can set for itself.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3600);

/// Why a call cannot take the time that `within` gives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadWithin {
    /// The text is not a duration.
    #[error(transparent)]
    NotADuration(#[from] BadDuration),
    /// It is too short or too long.
    #[error("{} is out of its range: write 1ms to 1h", format_duration(*.given))]
    OutOfRange {
        /// How long it is.
        given: Duration,
    },
}

/// Reads the time of a call; `None` if the call sets none.
pub(super) fn read(within: Option<Delay>) -> Result<Option<Duration>, BadWithin> {
    let Some(given) = within.map(Delay::duration).transpose()? else { return Ok(None) };
    if (SHORTEST..=LONGEST).contains(&given) { Ok(Some(given)) } else { Err(BadWithin::OutOfRange { given }) }
}

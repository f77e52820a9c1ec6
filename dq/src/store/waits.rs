//! What the log says of entries that wait because their target takes none.

use std::time::Duration;

use crate::environment::Environment;
use crate::time::Timestamp;

/// After this long the log says again that entries wait, and later whenever they have waited twice as long.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// Since when the entries for a target have waited, and when the log repeats it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    wall: Timestamp,
    since: Duration,
    said_at: Duration,
}

impl Waits {
    /// The target has taken nothing. Returns since when, if it is time for a line in the log.
    pub(crate) fn to_say(waits: &mut Option<Self>, environment: &Environment) -> Option<Timestamp> {
        let now = environment.now();
        let begin = || Self { wall: environment.wall(), since: now, said_at: now };
        let waits = waits.get_or_insert_with(begin);
        if now < waits.said_at {
            return None;
        }
        waits.said_at = now + SAID_AGAIN.max(now.saturating_sub(waits.since));
        Some(waits.wall)
    }

    /// The target takes entries again. Returns since when it had taken none, if the log said that.
    pub(crate) fn over(waits: &mut Option<Self>) -> Option<Timestamp> {
        waits.take().map(|waits| waits.wall)
    }
}

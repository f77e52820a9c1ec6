//! When a topic must be asked again.

use std::time::Duration;

/// The earliest of the times that are given.
pub(super) fn earliest(times: impl IntoIterator<Item = Option<Duration>>) -> Option<Duration> {
    times.into_iter().flatten().min()
}

//! How the answers write durations: in milliseconds.

use std::time::Duration;

use serde::{Serialize, Serializer};

pub(super) fn duration<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(crate::time::millis_ceil(*time))
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
pub(super) fn optional_duration<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(crate::time::millis_ceil).serialize(to)
}

//! How answers and stores write durations: in whole milliseconds, rounded up.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::millis_ceil;

pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(millis_ceil(*time))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
pub(crate) fn optional<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(millis_ceil).serialize(to)
}

pub(crate) fn read_optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
}

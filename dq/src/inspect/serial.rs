//! How the answers write times, states and durations.

use std::fmt::Display;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::time::Timestamp;

pub(super) fn millis<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.as_millis())
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
pub(super) fn optional_millis<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    at.map(Timestamp::as_millis).serialize(to)
}

pub(super) fn duration<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(crate::time::millis_ceil(*time))
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
pub(super) fn optional_duration<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(crate::time::millis_ceil).serialize(to)
}

pub(super) fn text<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

#[expect(clippy::ref_option, reason = "the form that serde asks for")]
pub(super) fn optional_text<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(to)
}

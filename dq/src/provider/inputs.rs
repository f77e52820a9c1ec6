//! What callers write: delays, times and JSON payloads, and how each is read.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::error::Invalid;
use crate::job::{check_json, to_json};
use crate::time::{Delay, IntoDelay, MAX_DELAY, Timestamp};

/// The shortest and the longest time that a call can set for itself.
const MIN_CALL: Duration = Duration::from_millis(1);
const MAX_CALL: Duration = Duration::from_secs(3600);

/// Reads a duration of at most ten years.
pub(super) fn read(field: &'static str, delay: Delay) -> Result<Duration, Invalid> {
    bounded(field, delay.duration().map_err(|source| Invalid::BadDuration { field, source })?)
}

/// Checks that a duration is at most ten years.
pub(super) fn bounded(field: &'static str, delay: Duration) -> Result<Duration, Invalid> {
    if delay > MAX_DELAY {
        return Err(Invalid::TooLong { field, delay, limit: MAX_DELAY });
    }
    Ok(delay)
}

/// Reads how long a call may take; `None` if it does not say.
pub(super) fn read_within(within: Option<Delay>) -> Result<Option<Duration>, Invalid> {
    let field = "within";
    let Some(within) = within else { return Ok(None) };
    let given = within.duration().map_err(|source| Invalid::BadDuration { field, source })?;
    if (MIN_CALL..=MAX_CALL).contains(&given) {
        return Ok(Some(given));
    }
    Err(Invalid::OutOfRange { field, given, range: "write 1ms to 1h" })
}

/// When a job is due, as the caller gave it.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum When {
    /// This long after the store does it.
    After(Delay),
    /// At this time of the store's clock.
    At(Timestamp),
}

/// A value that says when a job is to be due: a delay (a [`Duration`], a text such as `"15m"`, or the value of
/// [`delay!`](crate::delay)), or a time (a [`Timestamp`] or a [`SystemTime`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a delay nor a time",
    label = "neither a delay nor a time",
    note = "write `\"15m\"`, `Duration::from_secs(900)`, a `Timestamp` or a `SystemTime`; a bare number has no unit"
)]
pub trait IntoWhen {
    /// Makes it.
    #[doc(hidden)]
    fn into_when(self) -> When;
}

macro_rules! delays {
    ($($type:ty)+) => {$(
        impl IntoWhen for $type {
            fn into_when(self) -> When {
                When::After(self.into_delay())
            }
        }
    )+};
}

delays!(Delay Duration &str String &String);

impl IntoWhen for Timestamp {
    fn into_when(self) -> When {
        When::At(self)
    }
}

impl IntoWhen for SystemTime {
    fn into_when(self) -> When {
        When::At(self.into())
    }
}

/// A payload without a type of its own: a [`Value`], or JSON text.
pub trait IntoJson {
    /// Returns the JSON text.
    ///
    /// # Errors
    /// If the text is not JSON, or is nested deeper than a decoder accepts (127).
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error>;
}

impl IntoJson for Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        to_json(&self)
    }
}

impl IntoJson for &Value {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        to_json(self)
    }
}

impl IntoJson for String {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        check_json(&self)?;
        Ok(self.into_bytes())
    }
}

impl IntoJson for &str {
    fn into_json(self) -> Result<Vec<u8>, serde_json::Error> {
        self.to_owned().into_json()
    }
}

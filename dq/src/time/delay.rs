//! What a caller may pass as a delay.

use std::time::Duration;

use dq_grammar::{InvalidValue, parse_duration};

/// A delay, or a text that is not one.
///
/// The call that receives a bad text reports it: for example, awaiting `add(..).after("2x")` returns an error. The
/// compiler checks the text of [`delay!`](crate::delay).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay(Result<Duration, InvalidValue>);

impl Delay {
    /// Reads a delay such as `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"` or `"2d"`.
    pub fn parse(text: &str) -> Self {
        Self(parse_duration(text))
    }

    /// The duration.
    ///
    /// # Errors
    /// [`InvalidValue`] if it was made from a text that is not a delay.
    pub fn duration(self) -> Result<Duration, InvalidValue> {
        self.0
    }
}

/// A value that can be a delay: a [`Duration`], a text such as `"15m"`, or the value of [`delay!`](crate::delay).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a delay",
    label = "not a delay",
    note = "write `\"15m\"`, `\"1h 30m\"` or `Duration::from_secs(900)`; a bare number has no unit"
)]
pub trait IntoDelay {
    /// Makes the delay.
    #[doc(hidden)]
    fn into_delay(self) -> Delay;
}

impl IntoDelay for Delay {
    fn into_delay(self) -> Delay {
        self
    }
}

impl IntoDelay for Duration {
    fn into_delay(self) -> Delay {
        Delay(Ok(self))
    }
}

impl IntoDelay for &str {
    fn into_delay(self) -> Delay {
        Delay::parse(self)
    }
}

impl IntoDelay for String {
    fn into_delay(self) -> Delay {
        Delay::parse(&self)
    }
}

impl IntoDelay for &String {
    fn into_delay(self) -> Delay {
        Delay::parse(self)
    }
}

//! What a caller may write where a delay is asked for.

use std::time::Duration;

use dq_grammar::{BadDuration, parse_duration};

/// A delay, or the text that was meant to be one.
///
/// A bad text is kept, not thrown: the call that got it (`add(..).after("2x")`, `channel.rejoin_after("2x")`) reports it
/// where it can answer. Write [`delay!`](crate::delay) to have the text checked by the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay(Result<Duration, BadDuration>);

impl Delay {
    /// Reads a delay as `"500ms"`, `"30s"`, `"15m"`, `"1h 30m"` or `"2d"`.
    pub fn parse(text: &str) -> Self {
        Self(parse_duration(text))
    }

    /// The duration.
    ///
    /// # Errors
    /// [`BadDuration`] when it was made from a text that is not one.
    pub fn duration(self) -> Result<Duration, BadDuration> {
        self.0
    }
}

/// What can be a delay: a [`Duration`], a text as `"15m"`, or what [`delay!`](crate::delay) gives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a delay",
    label = "not a delay",
    note = "write `\"15m\"`, `\"1h 30m\"` or `Duration::from_secs(900)`; a bare number has no unit"
)]
pub trait IntoDelay {
    /// The delay.
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

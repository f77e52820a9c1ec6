//! When a job is to be due: after a delay, or at a time.

use std::time::{Duration, SystemTime};

use crate::time::{Delay, IntoDelay, Timestamp};

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

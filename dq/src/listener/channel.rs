//! What becomes of a job is a value: the handler returns it.
//!
//! A branch that forgets to decide does not compile, nobody decides twice, and an error, a panic or a timeout outweighs
//! any decision because then none is returned.

use std::time::{Duration, SystemTime};

use dq_grammar::BadDuration;

use crate::time::{IntoDelay, LONGEST_DELAY};

/// Decides about one run of a job. Each method consumes it and gives the [`Decided`] to return.
#[derive(Debug)]
pub struct Channel(());

/// A decision to return from the handler.
#[must_use = "return it: the decision counts when the handler returns it"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided(Decision);

/// What a handler decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The job is done.
    Ack,
    /// Again, after the delay it was added with.
    Rejoin,
    /// Again, after this.
    RejoinAfter(Duration),
    /// Again, at this time; after the delay it was added with when that is past.
    RejoinAt(SystemTime),
    /// The outcome will be told from outside.
    Park,
    /// A delay was given that is none: the run becomes a failure that says so.
    BadDelay(String),
}

impl Decided {
    /// What was decided.
    pub const fn decision(&self) -> &Decision {
        &self.0
    }

    pub(crate) fn into_decision(self) -> Decision {
        self.0
    }
}

impl Channel {
    pub(crate) const fn new() -> Self {
        Self(())
    }

    /// The job is done and may be forgotten (or kept for the `retain` of its payload).
    pub fn ack(self) -> Decided {
        Decided(Decision::Ack)
    }

    /// Not yet: the job goes back as it was added and is due after the delay it was added with. No attempt is spent.
    pub fn rejoin(self) -> Decided {
        Decided(Decision::Rejoin)
    }

    /// Not yet: the job goes back as it was added and is due after `delay`, at most ten years. No attempt is spent.
    ///
    /// A text that is no delay makes the run a failure that says so; `delay!("2m")` is checked by the compiler.
    pub fn rejoin_after(self, delay: impl IntoDelay) -> Decided {
        Decided(match delay.into_delay().duration() {
            Ok(delay) if delay > LONGEST_DELAY => Decision::BadDelay(format!(
                "rejoin_after: the delay is {}, ten years is the limit",
                humantime::format_duration(delay)
            )),
            Ok(delay) => Decision::RejoinAfter(delay),
            Err(bad @ BadDuration { .. }) => Decision::BadDelay(format!("rejoin_after: {bad}")),
        })
    }

    /// Not yet: the job goes back as it was added and is due at `time`, or, when that is past, after the delay it was
    /// added with. No attempt is spent. A time more than ten years away makes the run a failure that says so.
    pub fn rejoin_at(self, time: SystemTime) -> Decided {
        Decided(Decision::RejoinAt(time))
    }

    /// The outcome will be told later from outside, by `provider.ack(..)` or `provider.requeue(..)`, for example by a
    /// webhook (which may also come first). The job is UNACKED until then; after its age `process_unacked` is asked.
    pub fn park(self) -> Decided {
        Decided(Decision::Park)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_delay_is_a_decision_that_says_so() {
        let decided = Channel::new().rejoin_after("2x");
        assert!(matches!(decided.decision(), Decision::BadDelay(text) if text.contains("`2x` is not a duration")));
        let decided = Channel::new().rejoin_after("11y");
        assert!(matches!(decided.decision(), Decision::BadDelay(text) if text.contains("ten years")));
    }
}

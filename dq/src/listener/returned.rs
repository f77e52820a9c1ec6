//! How the call of a handler ended.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows this to `dq-testing`

use super::channel::{Decided, Decision};
use super::delay_listener::UnackedDecision;
use super::failure::{Failure, JobError};
use super::next::Drafts;
use crate::job::{Cause, KeptState};

/// How a call ended, short of a panic or a timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// `on_due` decided.
    Decided(Decision),
    /// `on_due` decided, and keeps a state for the next run, or with an ack a result for callers.
    Keeping(Decision, KeptState),
    /// `on_due` acked, perhaps with a result, and this follows.
    Followed(Drafts, Option<KeptState>),
    /// `final_retry` returned, and this follows.
    FinalRetried(Option<Drafts>),
    /// `process_unacked` decided.
    Unacked(UnackedDecision),
    /// The handler returned an error; or the payload did not decode, then the cause is [`Cause::Decode`].
    Failed(Failure),
}

/// How the result of a handler ends a job.
pub(crate) fn returned(result: Result<Decided, JobError>) -> Returned {
    match result.map(Decided::into_parts) {
        Ok((Decision::BadDelay(text), ..)) => Returned::Failed(Failure::new(Cause::Error, text)),
        Ok((Decision::Dead(reason), state, next)) => {
            Returned::Failed(Failure::fatal(Cause::Error, reason).keeping(state).followed_by(next))
        }
        Ok((Decision::Ack, result, Some(next))) => Returned::Followed(next, result),
        Ok((decision, Some(state), _)) => Returned::Keeping(decision, state),
        Ok((decision, None, _)) => Returned::Decided(decision),
        Err(error) => Returned::Failed(Failure::of(error)),
    }
}

/// How the result of `process_unacked` ends a job.
pub(super) fn unacked(result: Result<UnackedDecision, JobError>) -> Returned {
    match result {
        Ok(decision) => Returned::Unacked(decision),
        Err(error) => Returned::Failed(Failure::of(error)),
    }
}

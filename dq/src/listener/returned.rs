//! How the call of a handler ended.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows this to `dq-testing`

use super::channel::{Decided, Decision};
use super::delay_listener::UnackedDecision;
use super::failure::{Failure, JobError};
use crate::job::Cause;

/// How a call ended, short of a panic or a timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// `on_due` decided.
    Decided(Decision),
    /// `final_retry` returned.
    FinalRetried,
    /// `process_unacked` decided.
    Unacked(UnackedDecision),
    /// The handler returned an error; or the payload did not decode, then the cause is [`Cause::Decode`].
    Failed(Failure),
}

/// How the result of a handler ends a job.
pub(super) fn returned(result: Result<Decided, JobError>) -> Returned {
    match result.map(Decided::into_decision) {
        Ok(Decision::BadDelay(text)) => Returned::Failed(Failure::new(Cause::Error, text)),
        Ok(Decision::Dead(reason)) => Returned::Failed(Failure::fatal(Cause::Error, reason)),
        Ok(decision) => Returned::Decided(decision),
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

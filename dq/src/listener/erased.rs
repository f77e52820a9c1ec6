//! A listener without its payload type: the code behind this needs no generics.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::channel::{Channel, Decided, Decision};
use super::delay_listener::{DelayListener, RetryDelay, UnackedDecision};
use super::failure::Failure;
use super::job::{Delivery, Job};
use crate::job::{Cause, Codec, DelayJob, Record};

/// The handler to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerCall {
    /// `on_due`.
    OnDue,
    /// `final_retry`, with the last failure.
    FinalRetry(Failure),
    /// `process_unacked`.
    ProcessUnacked,
}

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

/// A listener of any payload type.
pub trait ErasedListener: fmt::Debug + Send + Sync + 'static {
    /// Decodes the payload and calls a handler. The future owns everything it needs.
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivery) -> BoxFuture<'static, Returned>;

    /// Calls [`DelayListener::retry_delay`].
    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay;
}

pub(super) struct Erased<L>(pub(super) L);

impl<L> fmt::Debug for Erased<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<L>())
    }
}

impl<L: DelayListener> ErasedListener for Erased<L> {
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivery) -> BoxFuture<'static, Returned> {
        Box::pin(async move {
            let payload = match decode::<L::Job>(&record) {
                Ok(payload) => payload,
                Err(failure) => return Returned::Failed(failure),
            };
            drop(record);
            let job = Job::new(payload, delivery);
            match call {
                HandlerCall::OnDue => match self.0.on_due(job, Channel::new()).await.map(Decided::into_decision) {
                    Ok(Decision::BadDelay(text)) => Returned::Failed(Failure::new(Cause::Error, text)),
                    Ok(Decision::Dead(reason)) => Returned::Failed(Failure::fatal(Cause::Error, reason)),
                    Ok(decision) => Returned::Decided(decision),
                    Err(error) => Returned::Failed(Failure::of(error)),
                },
                HandlerCall::FinalRetry(failure) => {
                    self.0.final_retry(job, &failure).await;
                    Returned::FinalRetried
                }
                HandlerCall::ProcessUnacked => match self.0.process_unacked(job).await {
                    Ok(decision) => Returned::Unacked(decision),
                    Err(error) => Returned::Failed(Failure::of(error)),
                },
            }
        })
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        self.0.retry_delay(failed, failure)
    }
}

fn decode<P: DelayJob>(record: &Record) -> Result<P, Failure> {
    let undecodable = |error: &dyn fmt::Display| Failure::new(Cause::Decode, error.to_string());
    let (codec, payload) = record.payload().map_err(|bad| undecodable(&bad))?;
    match codec {
        Codec::Json => serde_json::from_slice(payload).map_err(|error| undecodable(&error)),
    }
}

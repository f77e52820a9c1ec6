//! A listener without its payload type, and how its calls end: the code behind this needs no generics.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::channel::{Channel, Decided, Decision};
use super::control::RunControl;
use super::delay_listener::{DelayListener, RetryDelay, UnackedDecision};
use super::failure::{Failure, JobError};
use super::job::{Delivered, Job};
use super::next::Drafts;
use crate::job::{Cause, Codec, KeptState, Record};

/// The handler to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerCall {
    /// `on_due`.
    OnDue,
    /// `on_exhausted`, with the last failure.
    OnExhausted(Failure),
    /// `on_park_timeout`.
    OnParkTimeout,
}

/// How a call ended, short of a panic or a timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// `on_due` decided.
    Decided(Decision),
    /// `on_due` decided, and keeps a state for the next run, or with an ack a result for callers.
    Keeping(Decision, KeptState),
    /// `on_due` acked, perhaps with a result, and this follows.
    Followed(Drafts, Option<KeptState>),
    /// `on_exhausted` returned, and this follows.
    FinalRetried(Option<Drafts>),
    /// `on_park_timeout` decided.
    Unacked(UnackedDecision),
    /// The handler returned an error; or the payload did not decode, then the cause is [`Cause::Decode`].
    Failed(Failure),
}

/// How the result of a handler ends a job.
pub(crate) fn returned(result: Result<Decided, JobError>) -> Returned {
    match result.map(Decided::into_parts) {
        Ok((Decision::BadDelay(text), ..)) => Returned::Failed(Failure::new(Cause::Error, text)),
        Ok((Decision::Dead(reason), state, next)) => {
            let mut failure = Failure::fatal(Cause::Error, reason);
            (failure.state, failure.next) = (state, next);
            Returned::Failed(failure)
        }
        Ok((Decision::Ack, result, Some(next))) => Returned::Followed(next, result),
        Ok((decision, Some(state), _)) => Returned::Keeping(decision, state),
        Ok((decision, None, _)) => Returned::Decided(decision),
        Err(error) => Returned::Failed(Failure::of(error)),
    }
}

/// How the result of `on_park_timeout` ends a job.
pub(super) fn unacked(result: Result<UnackedDecision, JobError>) -> Returned {
    match result {
        Ok(decision) => Returned::Unacked(decision),
        Err(error) => Returned::Failed(Failure::of(error)),
    }
}

/// A listener of any payload type.
pub trait ErasedListener: fmt::Debug + Send + Sync + 'static {
    /// Decodes the payload and calls a handler. The future owns everything it needs.
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivered) -> BoxFuture<'static, Returned>;

    /// Calls [`DelayListener::retry_delay`].
    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay;

    /// Whether the listener may have a [`retry_delay`](Self::retry_delay). `false` once it is known that nobody wrote one.
    fn may_have_retry_delay(&self) -> bool {
        true
    }

    /// The same listener, if it takes batches. Its `call` makes a batch of one.
    fn batches(self: Arc<Self>) -> Option<Arc<dyn ErasedBatches>> {
        None
    }
}

/// A listener of any payload type that takes batches.
pub trait ErasedBatches: fmt::Debug + Send + Sync + 'static {
    /// Decodes the payloads and calls the handler with those that decode. `outcomes` gets what is decided before the handler
    /// returns, by the places of the jobs in this list; what this returns is for the others. `run` is that of the whole batch.
    fn call_batch(
        self: Arc<Self>,
        jobs: Vec<(Record, Delivered)>,
        outcomes: Arc<dyn Outcomes>,
        run: Arc<RunControl>,
    ) -> BoxFuture<'static, Returned>;
}

/// Takes in how each job of a batch ends before its handler returns.
pub trait Outcomes: fmt::Debug + Send + Sync {
    /// This is the outcome of the job at this place of the batch. `false`: the job has one already, or the batch is over.
    fn ended(&self, place: usize, returned: Returned) -> bool;
}

/// What is known of a listener's `retry_delay`. For a struct, only its first answer tells that nobody wrote it.
#[derive(Debug)]
pub(super) struct Asked {
    may_be_written: AtomicBool,
}

impl Asked {
    pub(super) const fn new(may_be_written: bool) -> Self {
        Self { may_be_written: AtomicBool::new(may_be_written) }
    }

    pub(super) fn may_be_written(&self) -> bool {
        self.may_be_written.load(Relaxed)
    }

    /// Learns from an answer.
    pub(super) fn learn(&self, answer: RetryDelay) -> RetryDelay {
        if answer != RetryDelay::NotWritten {
            return answer;
        }
        self.may_be_written.store(false, Relaxed);
        RetryDelay::BySettings
    }
}

pub(super) struct Erased<L>(L, Asked);

impl<L: DelayListener> Erased<L> {
    pub(super) const fn new(listener: L) -> Self {
        Self(listener, Asked::new(L::MAY_HAVE_RETRY_DELAY))
    }
}

impl<L> fmt::Debug for Erased<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<L>())
    }
}

impl<L: DelayListener> ErasedListener for Erased<L> {
    fn call(self: Arc<Self>, call: HandlerCall, record: Record, delivery: Delivered) -> BoxFuture<'static, Returned> {
        Box::pin(async move {
            let payload = match decode::<L::Job>(&record) {
                Ok(payload) => payload,
                Err(failure) => return Returned::Failed(failure),
            };
            drop(record);
            let job = Job::new(payload, delivery);
            match call {
                HandlerCall::OnDue => {
                    let channel = Channel::of(job.delivery());
                    returned(self.0.on_due(job, channel).await)
                }
                HandlerCall::OnExhausted(failure) => {
                    let run = Arc::clone(&job.delivery().run);
                    run.allow_next();
                    self.0.on_exhausted(job, &failure).await;
                    Returned::FinalRetried(run.take_next())
                }
                HandlerCall::OnParkTimeout => unacked(self.0.on_park_timeout(job).await),
            }
        })
    }

    fn retry_delay(&self, failed: u32, failure: &Failure) -> RetryDelay {
        self.1.learn(self.0.retry_delay(failed, failure))
    }

    fn may_have_retry_delay(&self) -> bool {
        self.1.may_be_written()
    }
}

pub(crate) fn decode<P: DeserializeOwned>(record: &Record) -> Result<P, Failure> {
    let undecodable = |error: &dyn fmt::Display| Failure::new(Cause::Decode, error.to_string());
    let (codec, payload) = record.payload().map_err(|bad| undecodable(&bad))?;
    match codec {
        Codec::Json => serde_json::from_slice(payload).map_err(|error| undecodable(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_tells_that_nobody_wrote_a_retry_delay() {
        let (function, written, unwritten) = (Asked::new(false), Asked::new(true), Asked::new(true));
        assert_eq!(written.learn(RetryDelay::BySettings), RetryDelay::BySettings);
        assert_eq!(unwritten.learn(RetryDelay::NotWritten), RetryDelay::BySettings);
        assert_eq!([function, written, unwritten].map(|asked| asked.may_be_written()), [false, true, false]);
    }
}

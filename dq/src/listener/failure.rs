//! How a run failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::next::Drafts;
use crate::job::{Cause, KeptState, StateError, limits};

/// How much of an error's text dq keeps, in bytes.
pub const MAX_ERROR: usize = limits::ERROR.most as usize;

/// What the log says instead of a decoder's text, which quotes the payload.
const UNDECODABLE: &str = "the payload does not decode into the type of the listener; `details.error` of the DEAD job, printed by itself, has the reason";

/// The error of a handler. `?` makes one from any error, including `anyhow::Error`, and `.into()` from a text.
///
/// The run is retried by the policy of the job. [`fatal`](Self::fatal) makes an error after which it is not.
pub struct JobError {
    error: Box<dyn Error + Send + Sync>,
    is_fatal: bool,
    state: Option<KeptState>,
}

impl JobError {
    /// An error that no retry can mend, such as a payload that makes no sense: no attempt is left, whatever the policy says.
    /// [`on_exhausted`](crate::DelayListener::on_exhausted) runs, and the job is DEAD with this error.
    ///
    /// [`Channel::dead`](crate::Channel::dead) does the same for a text.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "invoice")]
    /// # struct Invoice { net: String }
    /// #[delay_listener]
    /// async fn send(job: Job<Invoice>) -> Result<(), JobError> {
    ///     let net: u64 = job.net.parse().map_err(JobError::fatal)?; // it will not become a number by tomorrow
    ///     println!("{net}");
    ///     Ok(())
    /// }
    /// ```
    pub fn fatal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), is_fatal: true, state: None }
    }

    /// Keeps this state for the next run of the job, as [`Decided::with`](crate::Decided::with) does.
    ///
    /// # Errors
    /// [`StateError`] if it has more than 64 KiB, or cannot be written as JSON.
    pub fn with<S: Serialize + ?Sized>(self, state: &S) -> Result<Self, StateError> {
        Ok(Self { state: Some(KeptState::of(state)?), ..self })
    }

    /// Whether it was made by [`fatal`](Self::fatal).
    pub const fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// The error of this type: the error itself, or the first of its sources that is one, also in an `Arc` or a `Box`.
    ///
    /// `anyhow::Error` hides the type of an error that has no context. Turn it into a `JobError` with
    /// `error.reallocate_into_boxed_dyn_error_without_backtrace()`, or ask it itself, before dq gets it.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        find(&*self.error)
    }
}

/// The first error of this type in a chain of sources.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        if let Some(shared) = error.downcast_ref::<Arc<dyn Error + Send + Sync>>()
            && let Some(found) = find(&**shared)
        {
            return Some(found);
        }
        if let Some(shared) = error.downcast_ref::<Arc<E>>() {
            return Some(shared);
        }
        if let Some(boxed) = error.downcast_ref::<Box<E>>() {
            return Some(boxed);
        }
        next = error.source();
    }
    None
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self { error: error.into(), is_fatal: false, state: None }
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Display for JobError {
    /// The error and its sources, as `outer: inner`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)?;
        let mut source = self.error.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// Why a run failed, as [`DelayListener::retry_delay`](crate::DelayListener::retry_delay) and
/// [`DelayListener::on_exhausted`](crate::DelayListener::on_exhausted) receive it.
///
/// Two failures are equal if cause and text are.
#[derive(Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of failure.
    pub cause: Cause,
    /// The text, cut to 4 KiB.
    pub message: String,
    is_fatal: bool,
    /// What the run keeps for the next one.
    pub(super) state: Option<KeptState>,
    /// What follows the job, which this failure ends.
    pub(super) next: Option<Drafts>,
    /// The error of the handler, as long as the failure is on the user's runtime: its `Drop` is the user's code.
    error: Option<Arc<dyn Error + Send + Sync>>,
}

impl PartialEq for Failure {
    fn eq(&self, other: &Self) -> bool {
        (self.cause, &self.message) == (other.cause, &other.message)
    }
}

impl Eq for Failure {}

impl Failure {
    /// Makes a failure. It cuts the text to 4 KiB, at the end of a character.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        const CUT: &str = " … (cut)";
        let mut message = message.into();
        if message.len() > MAX_ERROR {
            message.truncate(limits::cut(&message, MAX_ERROR - CUT.len()).len());
            message.push_str(CUT);
            message.shrink_to_fit();
        }
        Self { cause, message, is_fatal: false, state: None, next: None, error: None }
    }

    /// A failure after which no attempt is left.
    pub(crate) fn fatal(cause: Cause, message: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(cause, message) }
    }

    /// The failure of a handler that returned this error.
    pub(crate) fn of(error: JobError) -> Self {
        let (text, is_fatal) = (error.to_string(), error.is_fatal);
        Self { is_fatal, state: error.state, error: Some(error.error.into()), ..Self::new(Cause::Error, text) }
    }

    /// Takes out what follows.
    pub(crate) fn take_next(&mut self) -> Option<Drafts> {
        self.next.take()
    }

    /// Takes out the state that the run keeps for the next one.
    pub(crate) fn take_state(&mut self) -> Option<KeptState> {
        self.state.take()
    }

    /// Whether no attempt is left, because the handler returned [`JobError::fatal`] or [`Channel::dead`](crate::Channel::dead).
    pub const fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// The error that the handler returned, if it is an `E` or has one among its sources, as [`JobError::downcast_ref`] finds
    /// it.
    ///
    /// Only `retry_delay` can have it. A store keeps the text alone, so `on_exhausted` gets `None`; so does a failure that is
    /// no error of the handler, such as a timeout.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.as_deref().and_then(|error| find(error))
    }

    /// Takes the error away, to be dropped where the user's code runs.
    pub(crate) fn take_error(&mut self) -> Option<Arc<dyn Error + Send + Sync>> {
        self.error.take()
    }

    /// The text for the log, without anything that quotes a payload.
    pub(crate) fn log_text(&self) -> &str {
        log_text(self.cause, &self.message)
    }
}

/// The text of an error for the log, without anything that quotes a payload.
pub(crate) fn log_text(cause: Cause, text: &str) -> &str {
    if cause == Cause::Decode { UNDECODABLE } else { text }
}

/// Shows the text, but never that of a decoder, which quotes the payload.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.log_text())
    }
}

/// Shows the text, but never that of a decoder, which quotes the payload.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("cause", &self.cause)
            .field("message", &self.log_text())
            .field("is_fatal", &self.is_fatal)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("no answer")]
        struct Outer(#[source] fmt::Error);
        let error = JobError::from(Outer(fmt::Error));
        assert!(error.to_string().starts_with("no answer: an error occurred"));
        assert_eq!(JobError::from("a text").to_string(), "a text");
    }

    #[test]
    fn a_long_error_is_cut_at_a_character() {
        let failure = Failure::new(Cause::Error, "é".repeat(10 << 20));
        assert!(failure.message.len() <= MAX_ERROR && failure.message.ends_with("(cut)"));
    }
}

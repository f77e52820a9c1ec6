//! The outcome of a run is a value that the handler returns.
//!
//! The compiler rejects a branch that returns no decision, and a handler cannot decide twice, because a decision
//! consumes the channel. A handler that fails, panics or times out returns no decision, so the failure counts.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::RunControl;
use super::job::Delivered;
use super::next::{Drafts, FollowUpError, FollowUps};
use super::notes::{CheckpointError, Notes};
use crate::job::{JobId, KeptState, Progress, StateError, Token};
use crate::time::{IntoDelay, MAX_DELAY};

/// The longest [`Channel::back_off`].
const MAX_BACK_OFF: Duration = dq_grammar::DAY;

/// Decides the outcome of one run. Each method consumes the channel and makes the [`Decided`] that the handler returns.
///
/// ```
/// # use dq::prelude::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// # #[job(topic = "order-timeout", delay = "30m")]
/// # struct CloseOrder { paid: bool }
/// #[delay_listener]
/// async fn close(job: Job<CloseOrder>, channel: Channel) -> Result<Decided, JobError> {
///     Ok(if job.paid { channel.ack() } else { channel.rejoin_after("2m") })
/// }
/// ```
#[derive(Debug)]
pub struct Channel(Noted);

/// Where the notes of a channel go.
#[derive(Debug)]
enum Noted {
    /// The channel is of no single job.
    Nowhere,
    /// A test made it.
    Untold,
    Run {
        notes: Arc<dyn Notes>,
        id: JobId,
        token: Token,
        control: Arc<RunControl>,
        is_acked: bool,
    },
}

/// The decision of a handler, made by one of the methods of [`Channel`].
#[must_use = "return it: the decision counts when the handler returns it"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    decision: Decision,
    state: Option<KeptState>,
    next: Option<Drafts>,
    /// Why it has none.
    refusal: Option<FollowUpError>,
}

/// The decision in a [`Decided`], for tests of handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The job is finished.
    Ack,
    /// The job runs again, after the delay it was added with; after a second if it has none.
    Rejoin,
    /// The job runs again, after this delay.
    RejoinAfter(Duration),
    /// The job runs again after this delay, and until then no node starts a job of the topic.
    BackOff(Duration),
    /// The job runs again, at this time; if the time has passed, after the delay the job was added with.
    RejoinAt(SystemTime),
    /// The job is UNACKED until a call from outside ends it.
    Park,
    /// No retry can help the job: the run fails with this text, and no attempt is left.
    Dead(String),
    /// The handler gave a delay that is not valid: the run fails with this text.
    BadDelay(String),
}

impl Decided {
    const fn new(decision: Decision) -> Self {
        Self { decision, state: None, next: None, refusal: None }
    }

    /// The decision.
    pub const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Keeps this state for the next run of the job, which reads it with [`Job::state`](crate::Job::state). It takes the place of
    /// the state that the job had; without a `with` that one stays. The store writes it in the step that settles the job. A state is
    /// JSON, as a payload is, of at most 64 KiB. After an ack it is the result, as that of [`ack_with`](Channel::ack_with).
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "reminder")]
    /// # struct Remind { user: u64 }
    /// # async fn send(_: u64, _: u32) -> Result<(), JobError> { Ok(()) }
    /// #[delay_listener]
    /// async fn remind(job: Job<Remind>, channel: Channel) -> Result<Decided, JobError> {
    ///     let sent: u32 = job.state()?.unwrap_or(0);
    ///     send(job.user, sent).await?;
    ///     Ok(if sent < 2 { channel.rejoin_after("3d").with(&(sent + 1))? } else { channel.ack() })
    /// }
    /// ```
    ///
    /// # Errors
    /// [`StateError`] if it is larger, or cannot be written as JSON.
    pub fn with<S: Serialize + ?Sized>(self, state: &S) -> Result<Self, StateError> {
        Ok(Self { state: Some(KeptState::of(state)?), ..self })
    }

    /// What [`with`](Self::with) or [`ack_with`](Channel::ack_with) keeps, for tests of handlers.
    ///
    /// # Errors
    /// [`StateError::Decode`] if it is not an `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, StateError> {
        self.state.as_ref().map(KeptState::decode).transpose()
    }

    /// Adds, broadcasts or deletes other jobs with the end of this one, each once: the store keeps these follow-ups in the step that
    /// settles the job, and dq brings them to their topics, whatever crashes meanwhile. Only [`ack`](Channel::ack) and
    /// [`dead`](Channel::dead) have follow-ups. After a `dead` they stand in place of
    /// [`on_exhausted`](crate::DelayListener::on_exhausted), which does not run. Of a job that was deleted or cancelled during its run nothing
    /// follows. At most 1,000, of 1 MiB together.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "payment")]
    /// # struct Pay { order: u64 }
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "shipment")]
    /// # struct Ship { order: u64 }
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "reminder")]
    /// # struct Remind { #[job(id)] order: u64 }
    /// #[delay_listener]
    /// async fn pay(job: Job<Pay>, channel: Channel) -> Result<Decided, JobError> {
    ///     let order = job.order;
    ///     Ok(channel.ack().then(|next| {
    ///         next.add(Ship { order }).after("1h");
    ///         next.delete::<Remind>(order);
    ///     })?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FollowUpError`] if the decision has none, or if they are not valid.
    pub fn then(self, next: impl FnOnce(&mut FollowUps)) -> Result<Self, FollowUpError> {
        if !matches!(self.decision, Decision::Ack | Decision::Dead(_)) {
            return Err(FollowUpError::NotEnded);
        }
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let mut follow_ups = FollowUps::default();
        next(&mut follow_ups);
        Ok(Self { next: Some(follow_ups.check()?), ..self })
    }

    /// How many follow-ups [`then`](Self::then) has given, for tests of handlers.
    pub fn follow_ups(&self) -> usize {
        self.next.as_ref().map_or(0, Drafts::len)
    }

    pub(crate) fn into_parts(self) -> (Decision, Option<KeptState>, Option<Drafts>) {
        (self.decision, self.state, self.next)
    }

    /// A decision with a delay, or with what is wrong with the delay that `method` was called with.
    fn after(
        delay: impl IntoDelay,
        method: &str,
        longest: Duration,
        allowed: &str,
        decide: fn(Duration) -> Decision,
    ) -> Self {
        Self::new(match delay.into_delay().duration() {
            Ok(delay) if delay > longest => Decision::BadDelay(format!(
                "{method}: the delay is {}, but at most {allowed} allowed",
                humantime::format_duration(delay)
            )),
            Ok(delay) => decide(delay),
            Err(bad) => Decision::BadDelay(format!("{method}: {bad}")),
        })
    }
}

impl Channel {
    /// A channel that belongs to no run of one job.
    pub(crate) const fn new() -> Self {
        Self(Noted::Nowhere)
    }

    /// The channel of a test: it takes in what it is told, and keeps nothing.
    #[cfg(feature = "testing")]
    pub(crate) const fn of_a_test() -> Self {
        Self(Noted::Untold)
    }

    pub(crate) fn of(delivery: &Delivered) -> Self {
        let Some(notes) = &delivery.notes else { return Self(Noted::Untold) };
        Self(Noted::Run {
            notes: Arc::clone(notes),
            id: delivery.id.clone(),
            token: delivery.token(),
            control: Arc::clone(&delivery.run),
            is_acked: delivery.is_acked,
        })
    }

    /// Saves a state in the middle of a run: if the run crashes, fails or goes back, the next one reads it with
    /// [`Job::state`](crate::Job::state). It takes the place of the state that the job had, as [`with`](Decided::with) does.
    ///
    /// `Ok` says that the store has it. A node that has lost its job in the meantime gets [`CheckpointError::Lost`], so no late run
    /// overwrites the state of a later one. If the store is away, the error comes within a few seconds and the run may go on. If the
    /// future is dropped, the state is saved or not.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "import")]
    /// # struct Import { pages: u32 }
    /// # async fn import_page(_: u32) -> Result<(), JobError> { Ok(()) }
    /// #[delay_listener]
    /// async fn import(job: Job<Import>, channel: Channel) -> Result<Decided, JobError> {
    ///     let next: u32 = job.state()?.unwrap_or(0);
    ///     for page in next..job.pages {
    ///         import_page(page).await?;
    ///         channel.checkpoint(&(page + 1)).await?;
    ///     }
    ///     Ok(channel.ack())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn checkpoint<S: Serialize + ?Sized>(
        &self,
        state: &S,
    ) -> impl Future<Output = Result<(), CheckpointError>> + Send + 'static + use<S> {
        let sent = match (KeptState::of(state), &self.0) {
            (Err(bad), _) => Err(CheckpointError::State(bad)),
            (Ok(_), Noted::Nowhere) => Err(CheckpointError::NoJob),
            (Ok(_), Noted::Untold) => Ok(None),
            (Ok(state), Noted::Run { notes, id, token, .. }) => Ok(Some(notes.checkpoint(id, *token, state))),
        };
        async move {
            match sent? {
                // The topic has ended if it drops the other end.
                Some(answer) => answer.await.unwrap_or(Err(CheckpointError::Unconfirmed)),
                None => Ok(()),
            }
        }
    }

    /// Says how far the run has come, for people: `dq show`, the dashboard, the JSON API and events show it until the run ends. A `total`
    /// of 0 means that nobody knows it. Of the text dq keeps 200 bytes.
    ///
    /// Call it as often as you like: it only leaves the numbers for dq, which writes the newest to the store once a second at most. So it
    /// promises nothing; for what the next run needs there is [`checkpoint`](Self::checkpoint).
    pub fn progress(&self, done: u64, total: u64, text: impl AsRef<str>) {
        // The topic is told only if it does not know that there is one.
        if let Noted::Run { notes, id, token, control, .. } = &self.0
            && control.set_progress(Progress::new(done, total, text.as_ref()))
        {
            notes.progress(id, *token, control);
        }
    }

    /// The job is finished. The store removes it, or keeps it as DONE for the `retain` of its payload.
    pub fn ack(self) -> Decided {
        self.ends(Decision::Ack)
    }

    fn ends(self, decision: Decision) -> Decided {
        let refusal = match self.0 {
            Noted::Nowhere => Some(FollowUpError::NoJob),
            Noted::Run { is_acked: true, .. } => Some(FollowUpError::Acked),
            Noted::Untold | Noted::Run { .. } => None,
        };
        Decided { refusal, ..Decided::new(decision) }
    }

    /// The job is finished, and callers who wait with [`Provider::result`](crate::Provider::result) get this value: JSON of at most 64 KiB.
    /// The store keeps it with the job as DONE, in the step of the ack, for the `retain` of the payload; without one for an hour.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "report", retain = "1d")]
    /// # struct Report { month: u32 }
    /// # async fn total_of(_: u32) -> Result<u64, JobError> { Ok(0) }
    /// #[delay_listener]
    /// async fn report(job: Job<Report>, channel: Channel) -> Result<Decided, JobError> {
    ///     let total: u64 = total_of(job.month).await?;
    ///     Ok(channel.ack_with(&total)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`StateError`] if it is larger, or cannot be written as JSON.
    pub fn ack_with<R: Serialize + ?Sized>(self, result: &R) -> Result<Decided, StateError> {
        self.ack().with(result)
    }

    /// The job runs again, after the delay it was added with; after a second if it was added without one, so that no handler keeps a
    /// node busy with one job. This spends no attempt.
    pub fn rejoin(self) -> Decided {
        Decided::new(Decision::Rejoin)
    }

    /// The job runs again after `delay`, at most ten years; a delay of zero is a second. This spends no attempt.
    ///
    /// A text that is not a delay, or a longer delay, makes the run a failure. The compiler checks
    /// [`delay!("2m")`](crate::delay).
    pub fn rejoin_after(self, delay: impl IntoDelay) -> Decided {
        Decided::after(delay, "rejoin_after", MAX_DELAY, "ten years are", Decision::RejoinAfter)
    }

    /// The job runs again after `delay`, and until then no node starts a job of its group or, if it has none, of its topic: for a service that answers
    /// 429 or is down. The group or the topic is paused in the step that settles the job, for so long and by this node, so `why` and the dashboard
    /// show it, and a [`resume_group`](crate::provider::TopicProvider::resume_group) or [`resume`](crate::Provider::resume) ends it early. A longer
    /// pause stays as it is. This spends no attempt. At most a day; zero is a second.
    ///
    /// Running handlers are not stopped, and may back off as well. A text that is not a delay, or a longer delay, makes the run a failure.
    pub fn back_off(self, delay: impl IntoDelay) -> Decided {
        Decided::after(delay, "back_off", MAX_BACK_OFF, "a day is", Decision::BackOff)
    }

    /// The job runs again at `time` or, if that has passed, after the delay it was added with, as [`rejoin`](Self::rejoin). This spends no attempt.
    ///
    /// A time more than ten years away makes the run a failure.
    pub fn rejoin_at(self, time: SystemTime) -> Decided {
        Decided::new(Decision::RejoinAt(time))
    }

    /// The job is UNACKED until [`Provider::ack`](crate::Provider::ack) or
    /// [`Provider::requeue`](crate::Provider::requeue) ends it, for example from a webhook. The webhook may also come
    /// first.
    ///
    /// If neither call comes within the topic's `park_timeout` (7 days by default), dq calls
    /// [`DelayListener::on_park_timeout`](crate::DelayListener::on_park_timeout).
    pub fn park(self) -> Decided {
        Decided::new(Decision::Park)
    }

    /// No retry can help the job, whatever its policy: the run fails for this reason, `on_exhausted` runs, and the job is
    /// DEAD with it. The same as the error [`JobError::fatal`](crate::JobError::fatal).
    pub fn dead(self, reason: impl Into<String>) -> Decided {
        self.ends(Decision::Dead(reason.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_delay_is_a_decision_with_the_reason() {
        let decided = Channel::new().rejoin_after("2x");
        assert!(matches!(decided.decision(), Decision::BadDelay(text) if text.contains("`2x` is not a duration")));
        let decided = Channel::new().rejoin_after("11y");
        assert!(matches!(decided.decision(), Decision::BadDelay(text) if text.contains("ten years")));
    }
}

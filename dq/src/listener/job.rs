//! A job, as its handler receives it.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use serde::de::DeserializeOwned;

use super::control::RunControl;
use super::next::{FollowUpError, FollowUps};
use super::notes::Notes;
use crate::job::{Fence, JobId, KeptState, StateError, Token, TopicName};
use crate::time::Timestamp;

/// What a run knows of its job besides the payload.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The topic.
    pub topic: TopicName,
    /// The id.
    pub id: JobId,
    /// The fence of this run.
    pub fence: Fence,
    /// When the job was due.
    pub due: Timestamp,
    /// Failed runs before this one.
    pub attempt: u32,
    /// The headers that the job was added with.
    pub headers: Vec<(String, String)>,
    /// What an earlier run left.
    pub state: Option<KeptState>,
    /// The job was acked on claim, so nothing can follow from its end.
    pub is_acked: bool,
    /// Where its notes go; `None`: a test made it.
    pub notes: Option<Arc<dyn Notes>>,
    /// Tells when dq asks the run to stop.
    pub run: Arc<RunControl>,
}

impl Delivered {
    /// The token of the run.
    pub(super) const fn token(&self) -> Token {
        Token { fence: self.fence, due: self.due }
    }
}

/// A job, as its handler receives it: the payload, to which it dereferences, and the facts of this run.
///
/// If your payload has a method with the name of one of these, call yours as `CloseOrder::attempt(&job)`.
pub struct Job<P> {
    payload: P,
    delivery: Delivered,
    /// Where it is in its batch.
    place: usize,
}

impl<P> Job<P> {
    pub(crate) const fn new(payload: P, delivery: Delivered) -> Self {
        Self::of_batch(payload, delivery, 0)
    }

    /// A job at this place of a batch.
    pub(crate) const fn of_batch(payload: P, delivery: Delivered, place: usize) -> Self {
        Self { payload, delivery, place }
    }

    pub(crate) const fn place(&self) -> usize {
        self.place
    }

    /// The id of the job within its topic.
    pub const fn id(&self) -> &JobId {
        &self.delivery.id
    }

    /// The fence of this run: a number that grows from run to run of a job, even across a failover of the store.
    ///
    /// Store the fence with your data, and reject a write whose fence is smaller than the stored one. Then a run that
    /// lost its job cannot overwrite the work of a later run.
    pub const fn fence(&self) -> Fence {
        self.delivery.fence
    }

    /// The number of failed runs before this one. A rejoin does not change it.
    pub const fn attempt(&self) -> u32 {
        self.delivery.attempt
    }

    /// When the job was due, by the store's clock.
    pub fn due(&self) -> SystemTime {
        self.delivery.due.into()
    }

    /// The header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.delivery.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The state that an earlier run has left, by [`Decided::with`](crate::Decided::with), [`JobError::with`](crate::JobError::with) or
    /// its last [`checkpoint`](crate::Channel::checkpoint): `None` in the first run, and as long as none has left one. A replacement of
    /// the job begins without.
    ///
    /// # Errors
    /// [`StateError::Decode`] if it is not an `S`.
    pub fn state<S: DeserializeOwned>(&self) -> Result<Option<S>, StateError> {
        self.delivery.state.as_ref().map(KeptState::decode).transpose()
    }

    /// Adds, broadcasts or deletes other jobs with the end of this one, each once, as [`Decided::then`](crate::Decided::then) does: for
    /// [`on_exhausted`](crate::DelayListener::on_exhausted), whose job becomes DEAD with them. A second call takes the place of the first.
    ///
    /// # Errors
    /// [`FollowUpError`] if they are not valid, and [`FollowUpError::NotEnded`] in any other handler.
    pub fn then(&self, next: impl FnOnce(&mut FollowUps)) -> Result<(), FollowUpError> {
        let mut follow_ups = FollowUps::default();
        next(&mut follow_ups);
        let drafts = follow_ups.check()?;
        if self.delivery.run.set_next(drafts) { Ok(()) } else { Err(FollowUpError::NotEnded) }
    }

    pub(super) const fn delivery(&self) -> &Delivered {
        &self.delivery
    }

    /// Completes when dq asks this run to stop: a command cancelled the job, the node lost its lease or the job, the
    /// timeout passed, or the grace of a shutdown ended. For any other run it never completes.
    ///
    /// Except after a cancel command, dq also drops the handler's future. Await this in work that goes on without that
    /// future, such as a spawned task; a thread can poll [`is_cancelled`](Self::is_cancelled). The future borrows
    /// nothing, is cancel safe, and needs no particular executor.
    ///
    /// ```
    /// # use dq::prelude::*;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Debug, Serialize, Deserialize, DelayJob)]
    /// # #[job(topic = "export")]
    /// # struct Export { path: String }
    /// # async fn upload(_: String) {}
    /// #[delay_listener(timeout = "1h")]
    /// async fn export(job: Job<Export>) -> Result<(), JobError> {
    ///     let (cancelled, upload) = (job.cancelled(), upload(job.path.clone()));
    ///     let task = tokio::spawn(async move {
    ///         tokio::select! { biased; () = cancelled => {} () = upload => {} }
    ///     });
    ///     task.await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<P> {
        self.delivery.run.token().cancelled_owned()
    }

    /// Returns whether dq has asked this run to stop; see [`cancelled`](Self::cancelled). Cheap enough for a loop.
    pub fn is_cancelled(&self) -> bool {
        self.delivery.run.is_cancelled()
    }

    /// The payload.
    pub fn into_payload(self) -> P {
        self.payload
    }
}

impl<P> Deref for Job<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.payload
    }
}

/// Shows id, fence and attempt, and never the payload.
impl<P> fmt::Debug for Job<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("topic", &self.delivery.topic.as_str())
            .field("id", &self.delivery.id.as_str())
            .field("fence", &self.delivery.fence.0)
            .field("attempt", &self.delivery.attempt)
            .finish_non_exhaustive()
    }
}

//! The provider of one topic, without a payload type; the typed form is a layer over it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::add::Add;
use super::add_many::{AddMany, DraftJob};
use super::command::{SendCommand, SendRunCommand};
use super::error::{AddError, QueryError};
use super::inbox::Inbox;
use super::pages::Pages;
use super::payload::IntoJson;
use super::query::query;
use super::root::Root;
use super::seen::Seen;
use crate::job::{BadName, JobDefaults, JobId, State, ToJobId, TopicName};
use crate::store::{CommandKind, TopicCounts};
use crate::time::{IntoDelay, LONGEST_DELAY};

/// Adds to one topic and looks after its jobs, without a payload type: for tools. Made by
/// [`Provider::topic`](super::Provider::topic). Cheap to clone.
#[derive(Clone)]
pub struct TopicProvider {
    pub(super) root: Arc<Root>,
    pub(super) inbox: Arc<Inbox>,
}

impl TopicProvider {
    pub(super) const fn new(root: Arc<Root>, inbox: Arc<Inbox>) -> Self {
        Self { root, inbox }
    }

    /// The topic.
    pub fn name(&self) -> &TopicName {
        &self.inbox.key.topic
    }

    /// Adds a job with this payload: a [`Value`], or JSON text, which is kept as it is written. Its id is generated unless
    /// [`id`](Add::id) says one.
    ///
    /// See [`Provider::add`](super::Provider::add).
    pub fn add_json(&self, payload: impl IntoJson) -> Add {
        self.draft(None, payload.into_json(), JobDefaults::NONE)
    }

    /// Adds many jobs with these payloads; see [`Provider::add_many`](super::Provider::add_many).
    pub fn add_many_json<P: IntoJson>(&self, payloads: impl IntoIterator<Item = P>) -> AddMany {
        let jobs = payloads.into_iter().map(|payload| (payload.into_json(), None));
        self.draft_many(jobs, JobDefaults::NONE)
    }

    pub(super) fn draft(
        &self,
        id: Option<Result<JobId, BadName>>,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> Add {
        Add::new(Arc::clone(&self.root), Arc::clone(&self.inbox), id, payload, defaults)
    }

    pub(super) fn draft_many(&self, jobs: impl IntoIterator<Item = DraftJob>, defaults: JobDefaults) -> AddMany {
        AddMany::new(Arc::clone(&self.root), Arc::clone(&self.inbox), jobs, defaults)
    }

    /// The delay of jobs that are added to this topic from now on, by this provider, without `after` or `at`; goes before
    /// that of the payload.
    ///
    /// # Errors
    /// [`AddError::BadDelay`] and [`AddError::DelayTooLong`]; then nothing is changed.
    pub fn set_default_delay(&self, delay: impl IntoDelay) -> Result<(), AddError> {
        let field = "after";
        let delay = delay.into_delay().duration().map_err(|source| AddError::BadDelay { field, source })?;
        if delay > LONGEST_DELAY {
            return Err(AddError::DelayTooLong { field, delay, limit: LONGEST_DELAY });
        }
        self.inbox.set_default_delay(delay);
        Ok(())
    }

    fn command(&self, verb: CommandKind, id: Result<JobId, BadName>) -> SendCommand {
        SendCommand::new(Arc::clone(&self.root), Arc::clone(&self.inbox), verb, id)
    }

    /// Removes a job wherever it is; a running one ends as deleted when its run ends, however it ends.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `delete(7)`")]
    pub fn delete(&self, id: impl ToJobId) -> SendCommand {
        self.command(CommandKind::Delete, id.to_job_id())
    }

    /// As [`delete`](Self::delete), and the handler of a running one is asked to stop through its token.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `cancel(7)`")]
    pub fn cancel(&self, id: impl ToJobId) -> SendCommand {
        self.command(CommandKind::Cancel, id.to_job_id())
    }

    /// Tells that a job is done: ends a parked or waiting one, or the run of a running one.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `ack(7)`")]
    pub fn ack(&self, id: impl ToJobId) -> SendRunCommand {
        SendRunCommand::new(self.command(CommandKind::Ack, id.to_job_id()))
    }

    /// Sends a DEAD job back with fresh attempts, or an UNACKED one as it was; it is due at once.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `requeue(7)`")]
    pub fn requeue(&self, id: impl ToJobId) -> SendRunCommand {
        SendRunCommand::new(self.command(CommandKind::Requeue, id.to_job_id()))
    }

    /// The job with this id, wherever it is; `None` when there is none.
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn get(&self, id: impl ToJobId) -> Result<Option<Seen<Value>>, QueryError> {
        self.get_id(id.to_job_id()?).await
    }

    pub(super) async fn get_id<P>(&self, id: JobId) -> Result<Option<Seen<P>>, QueryError> {
        let found = query(&self.root, &self.inbox.key, move |store, key| {
            let id = id.clone();
            Box::pin(async move { store.get(&key, std::slice::from_ref(&id)).await })
        });
        Ok(found.await?.into_iter().next().flatten().map(Seen::new))
    }

    /// How many jobs of the topic are where.
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn counts(&self) -> Result<TopicCounts, QueryError> {
        query(&self.root, &self.inbox.key, |store, key| Box::pin(async move { store.counts(&key).await })).await
    }

    /// Jobs in this state, in pages.
    pub fn list(&self, state: State) -> Pages<Value> {
        self.pages(state)
    }

    pub(super) fn pages<P>(&self, state: State) -> Pages<P> {
        Pages::new(Arc::clone(&self.root), Arc::clone(&self.inbox), state)
    }

    /// Jobs that wait, earliest due first.
    pub fn waiting(&self) -> Pages<Value> {
        self.pages(State::Delayed)
    }

    /// Jobs that nodes hold, by node and id.
    pub fn running(&self) -> Pages<Value> {
        self.pages(State::Running)
    }

    /// Parked jobs, longest parked first.
    pub fn unacked(&self) -> Pages<Value> {
        self.pages(State::Unacked)
    }

    /// Jobs that were given up, with cause, error, attempts and payload; longest dead first.
    pub fn dead(&self) -> Pages<Value> {
        self.pages(State::Dead)
    }
}

impl fmt::Debug for TopicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicProvider").field("topic", &self.inbox.key).finish_non_exhaustive()
    }
}

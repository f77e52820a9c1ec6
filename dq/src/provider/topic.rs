//! The provider of one topic, without a payload type; the typed provider is a layer over it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::add::Add;
use super::add_many::{AddMany, DraftJob};
use super::command::{AckOrRequeue, DeleteOrCancel, Sending};
use super::error::AddError;
use super::inbox::Inbox;
use super::pages::Pages;
use super::payload::IntoJson;
use super::query::{Ask, Query, query};
use super::root::Root;
use super::schedule::AddSchedule;
use super::seen::Seen;
use super::seen_schedule::SeenSchedule;
use crate::job::{BadName, JobDefaults, JobId, State, ToJobId, TopicName};
use crate::schedule::schedule_id;
use crate::store::{CommandKind, Stored, TopicCounts};
use crate::time::{IntoDelay, LONGEST_DELAY};

/// Adds jobs to one topic, sends commands for them and queries them, without a payload type: for tools. Made by
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

    /// The topic's name.
    pub fn name(&self) -> &TopicName {
        &self.inbox.key.topic
    }

    /// Adds a job with this payload, once the returned [`Add`] is awaited. The payload is a [`Value`], or JSON text, which is
    /// stored as it is written.
    ///
    /// It knows no payload type, so `#[job(..)]` of the type of this topic says nothing here: the id is generated unless
    /// [`id`](Add::id) sets one, and the job is due at once, does not expire, is not kept and goes to the queue, unless the add,
    /// or [`set_default_delay`](Self::set_default_delay), says otherwise. The node that runs the job knows its listener and, through
    /// that, the `retry` of the payload type. Everything else is as with [`Provider::add`](super::Provider::add).
    pub fn add_json(&self, payload: impl IntoJson) -> Add {
        self.draft(None, payload.into_json(), JobDefaults::NONE)
    }

    /// Adds up to 1,000 jobs with these payloads, as [`Provider::add_many`](super::Provider::add_many) does.
    pub fn add_many_json<P: IntoJson>(&self, payloads: impl IntoIterator<Item = P>) -> AddMany {
        let draft = |payload: P| DraftJob { payload: payload.into_json(), id: None, when: None };
        let jobs = payloads.into_iter().map(draft);
        self.draft_many(jobs, JobDefaults::NONE)
    }

    /// Adds a schedule whose jobs have this payload, as [`Provider::add_schedule`](super::Provider::add_schedule) does.
    pub fn add_schedule_json(&self, name: impl Into<String>, payload: impl IntoJson) -> AddSchedule {
        self.draft_schedule(name.into(), payload.into_json(), JobDefaults::NONE)
    }

    pub(super) fn draft_schedule(
        &self,
        name: String,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> AddSchedule {
        AddSchedule::new(Arc::clone(&self.root), Arc::clone(&self.inbox), name, payload, defaults)
    }

    /// Reads the schedule of this name, once the returned [`Query`] is awaited; `None` if there is none.
    pub fn schedule(&self, name: &str) -> Query<Option<SeenSchedule>> {
        let name = name.to_owned();
        self.get_one(schedule_id(&name), move |stored| SeenSchedule::new(name, &stored))
    }

    /// Removes the schedule of this name. Jobs that it has added stay.
    pub fn remove_schedule(&self, name: &str) -> DeleteOrCancel {
        DeleteOrCancel(self.command(CommandKind::Delete, schedule_id(name)))
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

    /// Sets the delay of jobs that this provider adds to the topic from now on without `after` or `at`. It overrides the
    /// payload's delay.
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

    fn command(&self, verb: CommandKind, id: Result<JobId, BadName>) -> Sending {
        Sending::new(Arc::clone(&self.root), Arc::clone(&self.inbox), verb, id)
    }

    /// Deletes a job in any state. A running job is deleted when its run ends, whatever the run's outcome is.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `delete(7)`")]
    pub fn delete(&self, id: impl ToJobId) -> DeleteOrCancel {
        DeleteOrCancel(self.command(CommandKind::Delete, id.to_job_id()))
    }

    /// Deletes a job as [`delete`](Self::delete) does, and asks the handler of a running one to stop through its token.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `cancel(7)`")]
    pub fn cancel(&self, id: impl ToJobId) -> DeleteOrCancel {
        DeleteOrCancel(self.command(CommandKind::Cancel, id.to_job_id()))
    }

    /// Acks a job: it ends a parked or waiting job, or a running one when its run ends. An unknown id is no error: the answer says
    /// whether anything changed.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `ack(7)`")]
    pub fn ack(&self, id: impl ToJobId) -> AckOrRequeue {
        AckOrRequeue(self.command(CommandKind::Ack, id.to_job_id()))
    }

    /// Makes a DEAD job due now with all its attempts again, or an UNACKED job due now as it was. An unknown id is no error: the
    /// answer says whether anything changed.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `requeue(7)`")]
    pub fn requeue(&self, id: impl ToJobId) -> AckOrRequeue {
        AckOrRequeue(self.command(CommandKind::Requeue, id.to_job_id()))
    }

    /// Reads the job with this id, in any state, once the returned [`Query`] is awaited; `None` if there is none.
    #[expect(clippy::needless_pass_by_value, reason = "reads as `get(7)`")]
    pub fn get(&self, id: impl ToJobId) -> Query<Option<Seen<Value>>> {
        self.get_id(id.to_job_id())
    }

    pub(super) fn get_id<P: 'static>(&self, id: Result<JobId, BadName>) -> Query<Option<Seen<P>>> {
        self.get_one(id, Seen::new)
    }

    fn get_one<T: 'static>(
        &self,
        id: Result<JobId, BadName>,
        seen: impl FnOnce(Stored) -> T + Send + 'static,
    ) -> Query<Option<T>> {
        let (root, inbox) = (Arc::clone(&self.root), Arc::clone(&self.inbox));
        let ask = |id: JobId| -> Ask<_> {
            Box::new(move |within| {
                Box::pin(async move {
                    let found = query(&root, &inbox.key, within, move |store, key, _| {
                        let id = id.clone();
                        Box::pin(async move { store.get(&key, std::slice::from_ref(&id)).await })
                    });
                    Ok(found.await?.into_iter().next().flatten().map(seen))
                })
            })
        };
        id.map_or_else(Query::bad, |id| Query::new(ask(id)))
    }

    /// Counts the topic's jobs in each state, once the returned [`Query`] is awaited.
    pub fn counts(&self) -> Query<TopicCounts> {
        let (root, inbox) = (Arc::clone(&self.root), Arc::clone(&self.inbox));
        Query::new(Box::new(move |within| {
            Box::pin(async move {
                let counts =
                    query(&root, &inbox.key, within, |store, key, _| Box::pin(async move { store.counts(&key).await }));
                counts.await
            })
        }))
    }

    /// Lists the jobs in this state.
    pub fn list(&self, state: State) -> Pages<Value> {
        self.pages(state)
    }

    pub(super) fn pages<P>(&self, state: State) -> Pages<P> {
        Pages::new(Arc::clone(&self.root), Arc::clone(&self.inbox), state)
    }

    /// Lists the jobs that wait, earliest due first.
    pub fn waiting(&self) -> Pages<Value> {
        self.pages(State::Delayed)
    }

    /// Lists the jobs that nodes hold, by node and id.
    pub fn running(&self) -> Pages<Value> {
        self.pages(State::Running)
    }

    /// Lists the parked jobs, longest parked first.
    pub fn unacked(&self) -> Pages<Value> {
        self.pages(State::Unacked)
    }

    /// Lists the jobs that were given up, with cause, error, attempts and payload, longest dead first.
    pub fn dead(&self) -> Pages<Value> {
        self.pages(State::Dead)
    }
}

impl fmt::Debug for TopicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicProvider").field("topic", &self.inbox.key).finish_non_exhaustive()
    }
}

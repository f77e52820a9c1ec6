//! The provider of one topic, without a payload type; the typed provider is a layer over it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::add::Add;
use super::add_many::{AddMany, DraftJob};
use super::command::{AckOrRequeue, DeleteOrCancel, Sending};
use super::events::Events;
use super::inbox::Inbox;
use super::pages::Pages;
use super::payload::IntoJson;
use super::query::{Ask, Query, query};
use super::root::Root;
use super::schedule::AddSchedule;
use super::schedule_change::ChangeSchedule;
use super::schedule_pages::Schedules;
use super::seen::Seen;
use super::seen_schedule::SeenSchedule;
use super::setting::{ChangeTopic, DrainTopic, PauseTopic, TopicSetting};
use crate::job::{BadName, JobDefaults, JobId, State, ToJobId, TopicName};
use crate::schedule::{SchedulePause, schedule_id};
use crate::store::{CommandKind, Drain, Pause, Stored, TopicChange, TopicCounts, TopicDelay, TopicState};
use crate::time::IntoDelay;

/// Adds jobs to one topic, sends commands for them and queries them, without a payload type: for tools. Made by
/// [`Provider::topic`](super::Provider::topic). Cheap to clone.
#[derive(Clone)]
pub struct TopicProvider {
    pub(super) root: Arc<Root>,
    pub(super) inbox: Arc<Inbox>,
    /// The name of the caller.
    pub(super) by: Option<Arc<str>>,
}

impl TopicProvider {
    pub(super) const fn new(root: Arc<Root>, inbox: Arc<Inbox>, by: Option<Arc<str>>) -> Self {
        Self { root, inbox, by }
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
        let (root, inbox) = (Arc::clone(&self.root), Arc::clone(&self.inbox));
        self.get_one(schedule_id(&name), move |stored| SeenSchedule::new(&root, &inbox, name, &stored))
    }

    /// Lists the schedules of the topic, as [`Provider::schedules`](super::Provider::schedules) does.
    pub fn schedules(&self) -> Schedules {
        Schedules::new(Ok((Arc::clone(&self.root), Arc::clone(&self.inbox))))
    }

    /// Pauses the schedule of this name, as [`Provider::pause_schedule`](super::Provider::pause_schedule) does.
    pub fn pause_schedule(&self, name: impl Into<String>, reason: impl Into<String>) -> ChangeSchedule {
        self.change_schedule(name.into(), Some(SchedulePause { reason: reason.into(), by: String::new() }))
    }

    /// Ends the pause of the schedule of this name, as [`Provider::resume_schedule`](super::Provider::resume_schedule) does.
    pub fn resume_schedule(&self, name: impl Into<String>) -> ChangeSchedule {
        self.change_schedule(name.into(), None)
    }

    fn change_schedule(&self, name: String, pause: Option<SchedulePause>) -> ChangeSchedule {
        ChangeSchedule::new(Arc::clone(&self.root), Arc::clone(&self.inbox), name, pause, self.by.clone())
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

    /// Pauses the topic on all its nodes, as [`Provider::pause`](super::Provider::pause) does.
    pub fn pause(&self) -> PauseTopic {
        PauseTopic::new(Arc::clone(&self.root), Arc::clone(&self.inbox)).by_caller(self.by.as_ref())
    }

    /// Ends the pause of the topic, as [`Provider::resume`](super::Provider::resume) does.
    pub fn resume(&self) -> ChangeTopic<Pause> {
        self.set(TopicChange::Resume)
    }

    /// Drains the topic, as [`Provider::drain`](super::Provider::drain) does.
    pub fn drain(&self) -> DrainTopic {
        DrainTopic::new(Arc::clone(&self.root), Arc::clone(&self.inbox)).by_caller(self.by.as_ref())
    }

    /// Ends the draining of the topic, as [`Provider::undrain`](super::Provider::undrain) does.
    pub fn undrain(&self) -> ChangeTopic<Drain> {
        self.set(TopicChange::Undrain)
    }

    /// Sets the default delay of the topic, as [`Provider::set_default_delay`](super::Provider::set_default_delay) does.
    pub fn set_default_delay(&self, delay: impl IntoDelay) -> ChangeTopic<TopicDelay> {
        self.set(TopicChange::Delay(None)).delay(delay.into_delay())
    }

    /// Takes the default delay of the topic away, as [`Provider::clear_default_delay`](super::Provider::clear_default_delay) does.
    pub fn clear_default_delay(&self) -> ChangeTopic<TopicDelay> {
        self.set(TopicChange::Delay(None))
    }

    fn set<T: TopicSetting>(&self, change: TopicChange) -> ChangeTopic<T> {
        ChangeTopic::new(Arc::clone(&self.root), Arc::clone(&self.inbox), change).by_caller(self.by.as_ref())
    }

    /// Reads whether the topic is paused or drains, and its default delay, once the returned [`Query`] is awaited. A pause that has
    /// ended by itself is none.
    pub fn state(&self) -> Query<TopicState> {
        let (root, inbox) = (Arc::clone(&self.root), Arc::clone(&self.inbox));
        Query::new(Box::new(move |within| {
            Box::pin(async move {
                let state = query(&root, &inbox.key, within, |store, key, _| {
                    Box::pin(async move { store.topic_state(&key).await })
                });
                state.await
            })
        }))
    }

    /// Listens to what happens to the jobs of the topic, as [`Provider::events`](super::Provider::events) does.
    pub fn events(&self) -> Events {
        Events::new(&self.root, &self.inbox)
    }

    fn command(&self, verb: CommandKind, id: Result<JobId, BadName>) -> Sending {
        Sending::new(Arc::clone(&self.root), Arc::clone(&self.inbox), verb, id, self.by.clone())
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
        Pages::new(Arc::clone(&self.root), Arc::clone(&self.inbox), state, self.by.clone())
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

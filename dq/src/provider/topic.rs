//! The provider of one topic, without a payload type; the typed provider is a layer over it.

#![expect(clippy::needless_pass_by_value, reason = "callers give ids, jobs and payloads away: `delete(7)`")]

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::add::{Add, AddMany, DraftJob};
use super::added::Extending;
use super::call::Call;
use super::change::{Change, JobOptions, reschedule, update};
use super::command::{AckedOrRequeued, JobCommand};
use super::events::Events;
use super::inputs::{IntoJson, IntoWhen, read};
use super::pages::{JobPages, SchedulePages};
use super::query::Query;
use super::root::Caller;
use super::schedule::AddSchedule;
use super::schedule_change::ChangeSchedule;
use super::seen::{JobInfo, ScheduleInfo};
use super::setting::{ChangeTopic, TopicSetting};
use crate::job::{InvalidName, JobDefaults, JobId, State, ToJobId, TopicName};
use crate::schedule::{SchedulePause, schedule_id};
use crate::store::{
    ChangeKind, CommandKind, Drain, Limit, LimitKind, Pause, Stored, TopicChange, TopicCounts, TopicDelay, TopicLimit,
    TopicState,
};
use crate::time::{Delay, IntoDelay};

/// Adds jobs to one topic, sends commands for them and queries them, without a payload type: for tools. Made by
/// [`Provider::topic`](super::Provider::topic). Cheap to clone.
#[derive(Clone)]
pub struct TopicProvider(pub(super) Caller);

impl TopicProvider {
    /// The topic's name.
    pub fn name(&self) -> &TopicName {
        self.0.topic()
    }

    /// Adds a job with this payload, once the returned [`Call`] is awaited. The payload is a [`Value`], or JSON text, which is
    /// stored as it is written.
    ///
    /// It knows no payload type, so `#[job(..)]` of the type of this topic says nothing here: the id is generated unless
    /// [`id`](Call::id) sets one, and the job is due at once, does not expire, is not kept and goes to the queue, unless the add,
    /// or [`set_default_delay`](Self::set_default_delay), says otherwise. The node that runs the job knows its listener and, through
    /// that, the `retry` of the payload type. Everything else is as with [`Provider::add`](super::Provider::add).
    pub fn add_json(&self, payload: impl IntoJson) -> Call<Add> {
        Call::add(self.0.clone(), untyped(payload), JobDefaults::NONE)
    }

    /// Adds up to 1,000 jobs with these payloads, as [`Provider::add_many`](super::Provider::add_many) does.
    pub fn add_many_json<P: IntoJson>(&self, payloads: impl IntoIterator<Item = P>) -> Call<AddMany> {
        Call::add_many(self.0.clone(), payloads.into_iter().map(untyped), JobDefaults::NONE)
    }

    /// Adds a schedule whose jobs have this payload, as [`Provider::add_schedule`](super::Provider::add_schedule) does.
    pub fn add_schedule_json(&self, name: impl Into<String>, payload: impl IntoJson) -> Call<AddSchedule> {
        Call::add_schedule(self.0.clone(), name.into(), payload.into_json(), JobDefaults::NONE)
    }

    /// Reads the schedule of this name, once the returned [`Call`] is awaited; `None` if there is none.
    pub fn schedule(&self, name: &str) -> Call<Query<Option<ScheduleInfo>>> {
        let (name, caller) = (name.to_owned(), self.0.clone());
        self.get_one(schedule_id(&name), move |stored| ScheduleInfo::new(&caller, name, &stored))
    }

    /// Lists the schedules of the topic, as [`Provider::schedules`](super::Provider::schedules) does.
    pub fn schedules(&self) -> SchedulePages {
        SchedulePages::new(Ok(self.0.clone()))
    }

    /// Pauses the schedule of this name, as [`Provider::pause_schedule`](super::Provider::pause_schedule) does.
    pub fn pause_schedule(&self, name: impl Into<String>, reason: impl Into<String>) -> Call<ChangeSchedule> {
        let pause = SchedulePause { reason: reason.into(), by: String::new() };
        Call::change_schedule(self.0.clone(), name.into(), Some(pause))
    }

    /// Ends the pause of the schedule of this name, as [`Provider::resume_schedule`](super::Provider::resume_schedule) does.
    pub fn resume_schedule(&self, name: impl Into<String>) -> Call<ChangeSchedule> {
        Call::change_schedule(self.0.clone(), name.into(), None)
    }

    /// Removes the schedule of this name. Jobs that it has added stay.
    pub fn remove_schedule(&self, name: &str) -> Call<JobCommand> {
        Call::command(self.0.clone(), CommandKind::Delete, schedule_id(name))
    }

    /// Pauses the topic on all its nodes, as [`Provider::pause`](super::Provider::pause) does.
    pub fn pause(&self) -> Call<ChangeTopic<Pause, true>> {
        self.set(TopicChange::Pause { group: None, reason: String::new(), until: None }, None)
    }

    /// Ends the pause of the topic, as [`Provider::resume`](super::Provider::resume) does.
    pub fn resume(&self) -> Call<ChangeTopic<Pause>> {
        self.set(TopicChange::Resume { group: None }, None)
    }

    /// Drains the topic, as [`Provider::drain`](super::Provider::drain) does.
    pub fn drain(&self) -> Call<ChangeTopic<Drain, true>> {
        self.set(TopicChange::Drain { reason: String::new() }, None)
    }

    /// Ends the draining of the topic, as [`Provider::undrain`](super::Provider::undrain) does.
    pub fn undrain(&self) -> Call<ChangeTopic<Drain>> {
        self.set(TopicChange::Undrain, None)
    }

    /// Sets the default delay of the topic, as [`Provider::set_default_delay`](super::Provider::set_default_delay) does.
    pub fn set_default_delay(&self, delay: impl IntoDelay) -> Call<ChangeTopic<TopicDelay>> {
        self.set(TopicChange::Delay(None), Some(delay.into_delay()))
    }

    /// Takes the default delay of the topic away, as [`Provider::clear_default_delay`](super::Provider::clear_default_delay) does.
    pub fn clear_default_delay(&self) -> Call<ChangeTopic<TopicDelay>> {
        self.set(TopicChange::Delay(None), None)
    }

    /// Sets a limit of the topic, as [`Provider::set_limit`](super::Provider::set_limit) does.
    pub fn set_limit(&self, limit: Limit) -> Call<ChangeTopic<TopicLimit, true>> {
        self.set(TopicChange::Limit { limit, reason: String::new() }, None)
    }

    /// Clears a limit of the topic, as [`Provider::clear_limit`](super::Provider::clear_limit) does.
    pub fn clear_limit(&self, kind: LimitKind) -> Call<ChangeTopic<TopicLimit>> {
        self.set(TopicChange::ClearLimit(kind), None)
    }

    pub(super) fn set<T: TopicSetting, const REASON: bool>(
        &self,
        change: TopicChange,
        delay: Option<Delay>,
    ) -> Call<ChangeTopic<T, REASON>> {
        Call::change_topic(self.0.clone(), change, delay)
    }

    /// Reads whether the topic is paused or drains, its default delay and its limits, once the returned [`Call`] is awaited. A pause that has
    /// ended by itself is none.
    pub fn state(&self) -> Call<Query<TopicState>> {
        self.asks((), |store, key, (), _| store.topic_state(key))
    }

    /// Listens to what happens to the jobs of the topic, as [`Provider::events`](super::Provider::events) does.
    pub fn events(&self) -> Events {
        Events::new(self.0.source())
    }

    /// Deletes a job in any state. A running job is deleted when its run ends, whatever the run's outcome is.
    pub fn delete(&self, id: impl ToJobId) -> Call<JobCommand> {
        Call::command(self.0.clone(), CommandKind::Delete, id.to_job_id())
    }

    /// Deletes a job as [`delete`](Self::delete) does, and asks the handler of a running one to stop through its token.
    pub fn cancel(&self, id: impl ToJobId) -> Call<JobCommand> {
        Call::command(self.0.clone(), CommandKind::Cancel, id.to_job_id())
    }

    /// Acks a job: it ends a parked or waiting job, or a running one when its run ends. An unknown id is no error: the answer says
    /// whether anything changed.
    pub fn ack(&self, id: impl ToJobId) -> Call<JobCommand<AckedOrRequeued>> {
        Call::command(self.0.clone(), CommandKind::Ack, id.to_job_id())
    }

    /// Makes a DEAD job due now with all its attempts again, or an UNACKED job due now as it was. An unknown id is no error: the
    /// answer says whether anything changed.
    pub fn requeue(&self, id: impl ToJobId) -> Call<JobCommand<AckedOrRequeued>> {
        Call::command(self.0.clone(), CommandKind::Requeue, id.to_job_id())
    }

    /// Reads the job with this id, in any state, once the returned [`Call`] is awaited; `None` if there is none.
    pub fn get(&self, id: impl ToJobId) -> Call<Query<Option<JobInfo<Value>>>> {
        self.get_id(id.to_job_id())
    }

    /// Waits for the result of a job, as [`Provider::result`](super::Provider::result) does.
    pub fn result<R: DeserializeOwned + Send + 'static>(&self, id: impl ToJobId) -> Call<Query<R>> {
        Call::result(self.0.clone(), id.to_job_id())
    }

    pub(super) fn get_id<P: 'static>(&self, id: Result<JobId, InvalidName>) -> Call<Query<Option<JobInfo<P>>>> {
        self.get_one(id, JobInfo::new)
    }

    pub(super) fn get_one<T: Send + 'static>(
        &self,
        id: Result<JobId, InvalidName>,
        seen: impl FnOnce(Stored) -> T + Send + 'static,
    ) -> Call<Query<Option<T>>> {
        let get = |id| {
            Call::query(
                self.0.clone(),
                id,
                |store, key, id, _| store.get(key, std::slice::from_ref(id)),
                |found| found.into_iter().next().flatten().map(seen),
            )
        };
        id.map_or_else(Call::bad, get)
    }

    /// Counts the topic's jobs in each state, once the returned [`Call`] is awaited.
    pub fn counts(&self) -> Call<Query<TopicCounts>> {
        self.asks((), |store, key, (), _| store.counts(key))
    }

    /// Lists the jobs in this state.
    pub fn list(&self, state: State) -> JobPages<Value> {
        self.pages(state)
    }

    pub(super) fn pages<P>(&self, state: State) -> JobPages<P> {
        JobPages::new(Ok(self.0.clone()), state)
    }

    /// Lists the jobs that wait, earliest due first.
    pub fn waiting(&self) -> JobPages<Value> {
        self.pages(State::Delayed)
    }

    /// Lists the jobs that nodes hold, by node and id.
    pub fn running(&self) -> JobPages<Value> {
        self.pages(State::Running)
    }

    /// Lists the parked jobs, longest parked first.
    pub fn unacked(&self) -> JobPages<Value> {
        self.pages(State::Unacked)
    }

    /// Lists the jobs that were given up, with cause, error, attempts and payload, longest dead first.
    pub fn dead(&self) -> JobPages<Value> {
        self.pages(State::Dead)
    }

    /// Gives a job that waits another due time, as [`Provider::reschedule`](super::Provider::reschedule) does.
    pub fn reschedule(&self, id: impl ToJobId, when: impl IntoWhen) -> Call<Change> {
        Call::change(self.0.clone(), id.to_job_id(), |caller| reschedule(caller, when.into_when()))
    }

    /// Makes a job that waits due this much later than it was, as [`Provider::extend_by`](super::Provider::extend_by) does.
    pub fn extend_by(&self, id: impl ToJobId, by: impl IntoDelay) -> Call<Change> {
        Call::change(self.0.clone(), id.to_job_id(), |_| read("extend_by", by.into_delay()).map(ChangeKind::ExtendBy))
    }

    /// Makes a job that waits due now, as [`Provider::run_now`](super::Provider::run_now) does.
    pub fn run_now(&self, id: impl ToJobId) -> Call<Change> {
        Call::change(self.0.clone(), id.to_job_id(), |_| Ok(ChangeKind::RunNow))
    }

    /// Gives a job another payload, as [`Provider::update`](super::Provider::update) does.
    pub fn update_json(&self, id: impl ToJobId, payload: impl IntoJson) -> Call<Change> {
        Call::change(self.0.clone(), id.to_job_id(), |caller| update(caller, payload.into_json()))
    }

    /// Gives a job other options, as [`Provider::set_options`](super::Provider::set_options) does.
    pub fn set_options(&self, id: impl ToJobId, options: JobOptions) -> Call<Change> {
        Call::change(self.0.clone(), id.to_job_id(), |_| options.check().map(ChangeKind::Options))
    }

    /// Adds a job with this payload, or extends the one that has its id, as [`Provider::add_or_extend`](super::Provider::add_or_extend) does. It needs an
    /// [`id`](Call::id).
    pub fn add_or_extend_json(&self, payload: impl IntoJson) -> Call<Add<Extending>> {
        Call::add(self.0.clone(), untyped(payload), JobDefaults::NONE)
    }
}

fn untyped(payload: impl IntoJson) -> DraftJob {
    DraftJob::untyped(payload.into_json())
}

impl fmt::Debug for TopicProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopicProvider").field("topic", &self.0).finish_non_exhaustive()
    }
}

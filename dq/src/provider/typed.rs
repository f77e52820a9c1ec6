//! The provider of all topics. It is typed: the payload's type names the topic and its defaults, the payload its id.

#![expect(clippy::needless_pass_by_value, reason = "callers give ids, jobs and payloads away: `delete(7)`")]

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use serde::de::DeserializeOwned;

use super::add::{Add, AddMany, DraftJob};
use super::added::{AddMode, Extending};
use super::buffer::{Buffer, BufferHealth, Buffered};
use super::call::{Call, Verb};
use super::change::{Change, ChangeMany, update};
use super::events::Events;
use super::inputs::When;
use super::pages::{JobPages, SchedulePages};
use super::query::Query;
use super::root::{Caller, Root};
use super::schedule::AddSchedule;
use super::seen::JobInfo;
use super::topic::TopicProvider;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::inspect::Inspector;
use crate::job::limits::cut;
use crate::job::{AppName, DelayJob, InvalidName, State, ToJobId, TopicName, to_json};
use crate::store::{MAX_AUTHOR, Outage, Store, TopicState};
use crate::time::{IntoDelay, Timestamp};

/// Adds jobs, sends commands for them and queries them. Cheap to clone; all clones are one provider.
///
/// [`add`](Self::add) and the commands return futures that do nothing until they are awaited. Await as many as you like at
/// the same time, from any number of tasks and on any executor: what is added concurrently goes to the store together.
///
/// While the store is unreachable, the provider repeats a request until `call_deadline` (10 s) has passed, or the time that
/// `.within(..)` gives the call; the store recognises repeats. If its memory or disk is full, the provider repeats once. The error then distinguishes *not added* from *unknown*: see [`CallError`](super::CallError).
///
/// When the last clone is dropped, requests that were sent or wait to be sent are still carried out;
/// [`close`](Self::close) waits for that.
#[derive(Clone)]
pub struct Provider(pub(super) Arc<Root>, pub(super) Option<Arc<str>>);

impl Provider {
    /// Adds a job to the topic of its payload, once the returned [`Call`] is awaited.
    ///
    /// Without `after` or `at` it is due after the delay of its topic or payload. Its id is the payload's, or a generated one
    /// if the payload has none. If a job with this id exists, the default is the error [`Refusal::Exists`](super::Refusal::Exists).
    ///
    /// Costs one allocation for the payload and, awaited, three more: id, record and answer. Concurrent adds share a request to the
    /// store and what that costs.
    pub fn add<J: DelayJob>(&self, job: J) -> Call<Add> {
        self.on::<J, _>(|topic| Call::add(topic.0, draft(&job, None), J::DEFAULTS))
    }

    /// Adds up to 1,000 jobs, once the returned [`Call`] is awaited: a result for each, in order, and
    /// [`all`](super::AddedMany::all) makes an error of them if one failed.
    ///
    /// More than 1,000 are [`Invalid::BatchTooLarge`](super::Invalid::BatchTooLarge), and nothing is sent. 500 and more may go to the store as two requests, so
    /// that it works on the first jobs while the others are made.
    pub fn add_many<J: DelayJob>(&self, jobs: impl IntoIterator<Item = J>) -> Call<AddMany> {
        self.drafts::<J, _>(jobs.into_iter().map(|job| (job, None)))
    }

    /// Adds up to 1,000 jobs as [`add_many`](Self::add_many) does, each with a delay of its own: pairs of a job and a `Duration`, or a
    /// text such as `"15m"`. It counts for that job instead of [`after`](Call::after) and [`at`](Call::at) of the call. A delay that
    /// cannot be read is an error of its job alone.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "remind")]
    /// # struct Remind { #[job(id)] customer: u64 }
    /// # async fn add(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.add_many_after([(Remind { customer: 7 }, "1d"), (Remind { customer: 8 }, "2d")]).await?.all()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_many_after<J: DelayJob, D: IntoDelay>(&self, jobs: impl IntoIterator<Item = (J, D)>) -> Call<AddMany> {
        self.drafts::<J, _>(jobs.into_iter().map(|(job, delay)| (job, Some(When::After(delay.into_delay())))))
    }

    /// Adds up to 1,000 jobs as [`add_many_after`](Self::add_many_after) does, each at a time of its own: pairs of a job and a time of
    /// the store's clock.
    pub fn add_many_at<J: DelayJob, T: Into<Timestamp>>(
        &self,
        jobs: impl IntoIterator<Item = (J, T)>,
    ) -> Call<AddMany> {
        self.drafts::<J, _>(jobs.into_iter().map(|(job, time)| (job, Some(When::At(time.into())))))
    }

    fn drafts<J: DelayJob, A: AddMode>(&self, jobs: impl Iterator<Item = (J, Option<When>)>) -> Call<AddMany<A>> {
        let jobs = jobs.map(|(job, when)| draft(&job, when));
        self.on::<J, _>(|topic| Call::add_many(topic.0, jobs, J::DEFAULTS))
    }

    /// A call to the topic of `J`.
    pub(super) fn on<J: DelayJob, V: Verb>(&self, call: impl FnOnce(TopicProvider) -> Call<V>) -> Call<V> {
        self.of::<J>().map_or_else(Call::bad, call)
    }

    /// Adds a schedule, once the returned [`Call`] is awaited: at each of its ticks the store adds a job with this payload.
    ///
    /// The name is unique among the schedules of the topic. The `#[job(id)]` of the payload says nothing here: each job gets an id with the
    /// name of the schedule and the time of its tick. Its delay says nothing either: a job is due at its tick.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "report")]
    /// # struct Report { customer: u64 }
    /// # async fn add(jobs: dq::Provider) -> Result<(), Box<dyn std::error::Error>> {
    /// jobs.add_schedule("report-7", Report { customer: 7 }).every("1h").keep_existing().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_schedule<J: DelayJob>(&self, name: impl Into<String>, job: J) -> Call<AddSchedule> {
        self.on::<J, _>(|topic| Call::add_schedule(topic.0, name.into(), to_json(&job), J::DEFAULTS))
    }

    /// Lists the schedules of a topic, in the order of their names, page by page: whoever added or defined them.
    ///
    /// ```no_run
    /// # async fn list<J: dq::DelayJob>(jobs: dq::Provider) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut schedules = jobs.schedules::<J>();
    /// while let Some(page) = schedules.next_page().await? {
    ///     for schedule in page {
    ///         println!("{}: {:?}", schedule.name, schedule.details?.next);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedules<J: DelayJob>(&self) -> SchedulePages {
        SchedulePages::new(self.of::<J>().map(|topic| topic.0))
    }

    /// Notes which schedules the code of this program defines.
    pub(crate) fn knows_code(&self, code: BTreeSet<(TopicName, String)>) {
        // A provider gets them once, when it is made.
        let _ = self.0.code.set(code);
    }

    /// Reads the job with this id, in any state, once the returned [`Call`] is awaited; `None` if there is none.
    pub fn get<J: DelayJob>(&self, id: impl ToJobId) -> Call<Query<Option<JobInfo<J>>>> {
        self.on::<J, _>(|topic| topic.get_id(id.to_job_id()))
    }

    /// Waits for what a job leaves with [`ack_with`](crate::listener::Channel::ack_with), whichever process runs it, once the returned
    /// [`Call`] is awaited: for `call_deadline` (10 s), or as long as [`within`](Call::within) says. A job that has ended before answers at once,
    /// as long as it is kept.
    ///
    /// The error is [`CallError::NoResult`](super::CallError::NoResult) if there is no such job, if it ended without a result, is DEAD, was
    /// deleted, or has not ended in time: [`NoResult`](super::NoResult) says which. A job that is retried, parked or replaced has not ended.
    ///
    /// Ten thousand callers at the same time share one subscription to the events of the topic. Any event may be lost, so dq also looks at
    /// each job after pauses of 2 to 30 s. Cancel safe.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "report", retain = "1d")]
    /// # struct Report { #[job(id)] month: u32 }
    /// # async fn wait(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.add(Report { month: 7 }).await?;
    /// let total: u64 = jobs.result::<Report, _>(7).within("30s").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn result<J: DelayJob, R: DeserializeOwned + Send + 'static>(&self, id: impl ToJobId) -> Call<Query<R>> {
        self.on::<J, _>(|topic| topic.result(id))
    }

    fn pages<J: DelayJob>(&self, state: State) -> JobPages<J> {
        JobPages::new(self.of::<J>().map(|topic| topic.0), state)
    }

    /// Lists the jobs that wait, earliest due first.
    pub fn waiting<J: DelayJob>(&self) -> JobPages<J> {
        self.pages(State::Delayed)
    }

    /// Lists the jobs that nodes hold, by node and id.
    pub fn running<J: DelayJob>(&self) -> JobPages<J> {
        self.pages(State::Running)
    }

    /// Lists the parked jobs, longest parked first.
    pub fn unacked<J: DelayJob>(&self) -> JobPages<J> {
        self.pages(State::Unacked)
    }

    /// Lists the jobs that were given up, with cause, error, attempts and payload, longest dead first.
    pub fn dead<J: DelayJob>(&self) -> JobPages<J> {
        self.pages(State::Dead)
    }

    /// Gives a job another payload, once the returned [`Call`] is awaited. Its due time, attempts, headers and options stay.
    ///
    /// It changes a DELAYED job, a waiting broadcast, and an UNACKED or DEAD job, which stays where it is: [`requeue`](Self::requeue)
    /// then runs it with the new payload. A RUNNING, DONE or unknown job is refused, as by [`reschedule`](Self::reschedule). A store
    /// whose memory is full refuses an update as it refuses an add.
    pub fn update<J: DelayJob>(&self, id: impl ToJobId, payload: J) -> Call<Change> {
        self.on::<J, _>(|topic| Call::change(topic.0, id.to_job_id(), |caller| update(caller, to_json(&payload))))
    }

    /// Sends up to 1,000 changes together, of any kind and topic, once the returned [`Call`] is awaited: a result for each, in
    /// order. Changes of one job take effect in their order; each of them then costs a round trip of its own.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "close-order")]
    /// # struct CloseOrder { #[job(id)] order: u64 }
    /// # async fn change(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// let orders = [7, 8, 9];
    /// for changed in jobs.change_many(orders.map(|order| jobs.extend_by::<CloseOrder>(order, "15m"))).await? {
    ///     changed?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_many(&self, changes: impl IntoIterator<Item = Call<Change>>) -> Call<ChangeMany> {
        Call::change_many(changes)
    }

    /// Adds a job, or extends the one that has its id, once the returned [`Call`] is awaited: a debounce.
    /// [`after`](Call::after) is the new delay from now, and [`at_most`](Call::at_most) bounds all of them together, counted
    /// from the first add, so that a job which is extended for ever still runs.
    ///
    /// | the job with this id | what happens | the answer |
    /// |---|---|---|
    /// | there is none, or a DONE one | the job is added | [`New`](super::AddedHow::New) |
    /// | DELAYED, or a waiting broadcast | it gets the new payload and due time, also an earlier one; attempts, headers and options stay | [`Extended`](super::AddedHow::Extended) |
    /// | RUNNING | the new job takes its place when the run ends; one that waits for that already is extended | [`ReplacementWaits`](super::AddedHow::ReplacementWaits), [`Extended`](super::AddedHow::Extended) |
    /// | UNACKED or DEAD | nothing | [`Refusal::NotExtended`](super::Refusal::NotExtended) |
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "session")]
    /// # struct Session { #[job(id)] user: u64 }
    /// # async fn beat(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// jobs.add_or_extend(Session { user: 7 }).after("30m").at_most("8h").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_or_extend<J: DelayJob>(&self, job: J) -> Call<Add<Extending>> {
        self.on::<J, _>(|topic| Call::add(topic.0, draft(&job, None), J::DEFAULTS))
    }

    /// Adds or extends up to 1,000 jobs, as [`add_or_extend`](Self::add_or_extend) does, once the returned [`Call`] is
    /// awaited: a result for each, in order.
    pub fn add_or_extend_many<J: DelayJob>(&self, jobs: impl IntoIterator<Item = J>) -> Call<AddMany<Extending>> {
        self.drafts::<J, _>(jobs.into_iter().map(|job| (job, None)))
    }

    /// Reads whether the topic of `J` is paused or drains, its default delay, and how many of its jobs run at a time,
    /// each with who set it and when, once the returned
    /// [`Query`] is awaited.
    pub fn topic_state<J: DelayJob>(&self) -> Call<Query<TopicState>> {
        self.on::<J, _>(|topic| topic.state())
    }

    /// The provider of one topic, without a payload type.
    ///
    /// The provider remembers each topic that it was asked for, at about 300 bytes each.
    ///
    /// # Errors
    /// [`InvalidName`] if `name` cannot be a topic's name.
    pub fn topic(&self, name: &str) -> Result<TopicProvider, InvalidName> {
        self.caller(name).map(TopicProvider)
    }

    pub(super) fn caller(&self, name: &str) -> Result<Caller, InvalidName> {
        Ok(Caller { root: Arc::clone(&self.0), inbox: self.0.inbox(name)?, by: self.1.clone() })
    }

    /// The provider of the topic of `J`.
    ///
    /// # Errors
    /// [`InvalidName`] if `J` implements [`DelayJob`] by hand and its topic cannot be a topic's name.
    pub fn of<J: DelayJob>(&self) -> Result<TopicProvider, InvalidName> {
        self.topic(J::TOPIC)
    }

    /// Listens to what happens to the jobs of a topic: a stream of [`Event`](super::Event)s, without payloads. The first item says
    /// that the subscription stands. After an outage the stream subscribes again by itself, and says so, because events may be
    /// missing. A reader that is too slow gets [`Event::Missed`](super::Event::Missed) with the number: up to 32 messages wait for
    /// it, each with up to 1,000 events.
    ///
    /// Events are for people and for live views. Any may be lost, so decide nothing by them. While nobody listens to a topic, they
    /// cost its steps nothing; while somebody does, a step on Redis publishes one message of up to 64 KiB with what it did.
    ///
    /// # Errors
    /// [`InvalidName`] if `topic` cannot be a topic's name.
    pub fn events(&self, topic: &str) -> Result<Events, InvalidName> {
        Ok(self.topic(topic)?.events())
    }

    /// The same provider for a caller with this name: commands, changes, pauses and default delays that are made with it carry the name,
    /// so that [events](Self::events) and histories say who deleted a job. Any text; what is over 256 bytes is cut off, and an empty one
    /// means none. Without a name it is the producer's: the host, the process and a random text.
    ///
    /// The name is what the program says: dq does not check it.
    ///
    /// ```no_run
    /// # use dq::prelude::*;
    /// # #[derive(serde::Serialize, serde::Deserialize, DelayJob)]
    /// # #[job(topic = "close-order")]
    /// # struct CloseOrder { #[job(id)] order: u64 }
    /// # async fn delete(jobs: dq::Provider) -> Result<(), dq::Error> {
    /// let alice = jobs.by("alice");
    /// alice.delete::<CloseOrder>(7).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn by(&self, name: impl AsRef<str>) -> Self {
        let name = cut(name.as_ref(), MAX_AUTHOR);
        Self(Arc::clone(&self.0), (!name.is_empty()).then(|| name.into()))
    }

    /// Looks at topics, jobs and nodes, says why a job has not run, and changes many jobs in steps; see [`Inspector`].
    pub fn inspect(&self) -> Inspector {
        Inspector::new(self)
    }

    /// What waits in the [buffer](crate::context::ContextFactory::buffer) of this provider; `None`: it has none. Asks nothing.
    pub fn buffer(&self) -> Option<BufferHealth> {
        self.0.buffer.as_ref().map(|buffer| buffer.health())
    }

    /// The buffer, if there is one.
    pub(crate) fn buffer_handle(&self) -> Option<Weak<Buffer>> {
        self.0.buffer.as_ref().map(Arc::downgrade)
    }

    /// The app whose jobs these are.
    pub fn app(&self) -> &AppName {
        &self.0.app
    }

    /// How often a task of this provider has panicked and was started again. Each is a defect of dq, with an error in the log.
    pub fn restarts(&self) -> u64 {
        self.0.restarts.load(Relaxed)
    }

    /// Makes the outages of the provider those of its node, before its first add.
    pub(crate) fn share_outage(&self, outage: Outage) {
        // A provider that has added before has its own.
        drop(self.0.outage.set(outage));
    }

    /// The live counter behind [`restarts`](Self::restarts), which does not keep the provider alive.
    pub(crate) fn restart_count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.restarts)
    }

    /// Accepts no more adds and commands of any clone, and waits until every earlier one has its answer: at most
    /// `call_deadline`. Later ones fail with [`Stopped`](super::FailureReason::Stopped); queries still work.
    ///
    /// Cancel safe: the provider stays closed.
    pub async fn close(&self) {
        let inboxes = self.0.close();
        join_all(inboxes.iter().map(|inbox| inbox.ended.cancelled())).await;
    }

    /// A provider of `app` on `store`, for programs that bring their own store; others get theirs from the context.
    ///
    /// Each root has its own producers and its own bound on unanswered requests. It costs nothing until it is used; then it
    /// runs one task for each topic, which sleeps while there is nothing to send.
    #[doc(hidden)]
    pub fn root(app: AppName, store: Arc<dyn Store>, environment: Environment, settings: NodeSettings) -> Self {
        Self(Arc::new(Root::new(app, store, environment, settings)), None)
    }

    /// A provider whose adds wait in a buffer while the store is away.
    pub(crate) fn buffered(
        app: AppName,
        buffer: Arc<Buffer>,
        environment: Environment,
        settings: NodeSettings,
    ) -> Self {
        let store = Arc::new(Buffered(Arc::clone(&buffer)));
        let mut root = Root::new(app, store, environment, settings);
        root.buffer = Some(buffer);
        Self(Arc::new(root), None)
    }
}

pub(super) fn draft<J: DelayJob>(job: &J, when: Option<When>) -> DraftJob {
    DraftJob { payload: to_json(job), id: job.job_id(), group: job.job_group(), weight: job.job_weight(), when }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("app", &self.0.app.as_str()).field("store", &self.0.store.url()).finish()
    }
}

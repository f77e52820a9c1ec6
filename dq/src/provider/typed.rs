//! The provider of all topics, typed: the payload says the topic, its defaults and its id.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;

use super::add::Add;
use super::add_many::AddMany;
use super::command::{SendCommand, SendRunCommand};
use super::error::{AddError, QueryError};
use super::pages::Pages;
use super::root::Root;
use super::seen::Seen;
use super::topic::TopicProvider;
use crate::config::NodeSettings;
use crate::environment::Environment;
use crate::job::{AppName, BadName, DelayJob, State, ToJobId};
use crate::store::{Store, TopicCounts};
use crate::time::IntoDelay;

/// Adds jobs and looks after them. Cheap to clone; all clones are one provider.
///
/// `add` and its kin make futures that do nothing until they are awaited. Any number of them may be under way at once, from
/// any number of tasks, and should be: what is added concurrently goes to the store together. They may be awaited on any
/// executor.
///
/// A call is repeated by itself while the store is out of reach, until `call_total` (10 s); repeats are recognised by the
/// store. The error tells *not added* from *unknown*: see [`AddError`](super::AddError).
///
/// When the last clone is dropped, what was sent or waits to be sent is still carried out; [`close`](Self::close) waits
/// for that.
#[derive(Clone)]
pub struct Provider(pub(super) Arc<Root>);

impl Provider {
    /// A provider of `app` on `store`, for programs that bring their own store; others get theirs from the context.
    ///
    /// Each root has its own producers and its own bound on unanswered requests. It costs nothing until it is used; then a
    /// task for each topic, which sleeps while nothing is added.
    #[doc(hidden)]
    pub fn root(app: AppName, store: Arc<dyn Store>, environment: Environment, settings: NodeSettings) -> Self {
        Self(Arc::new(Root::new(app, store, environment, settings)))
    }

    /// The app whose jobs these are.
    pub fn app(&self) -> &AppName {
        &self.0.app
    }

    /// The provider of one topic, without a payload type.
    ///
    /// A topic that was asked for once is remembered as long as this provider: about 300 bytes each.
    ///
    /// # Errors
    /// [`BadName`] when `name` cannot be a topic's.
    pub fn topic(&self, name: &str) -> Result<TopicProvider, BadName> {
        Ok(TopicProvider::new(Arc::clone(&self.0), self.0.inbox(name)?))
    }

    /// Takes no more adds and withdrawals, of any clone, and waits until those under way are answered: at most
    /// `call_total`. Later ones fail with [`Stopped`](super::AddError::Stopped); looks still work.
    ///
    /// Cancel safe: it stays closed.
    pub async fn close(&self) {
        let inboxes = self.0.close();
        join_all(inboxes.iter().map(|inbox| inbox.ended.cancelled())).await;
    }

    /// The provider of the topic of `J`.
    ///
    /// # Errors
    /// [`BadName`] when the topic of a payload that was not derived cannot be one.
    pub fn of<J: DelayJob>(&self) -> Result<TopicProvider, BadName> {
        self.topic(J::TOPIC)
    }

    /// Adds a job to the topic of its payload, once the returned [`Add`] is awaited.
    ///
    /// Without `after` or `at` it is due after the delay of its topic or payload. Its id is the payload's, else generated.
    /// If the id is known, the default is the error [`AddError::AlreadyExists`].
    ///
    /// Costs one allocation for the payload and, awaited, three more; a request to the store is shared with all adds of
    /// the same moment.
    #[expect(clippy::needless_pass_by_value, reason = "a job is given away")]
    pub fn add<J: DelayJob>(&self, job: J) -> Add {
        match self.of::<J>() {
            Ok(topic) => topic.draft(job.job_id(), serde_json::to_vec(&job), J::DEFAULTS),
            Err(error) => Add::bad(error.into()),
        }
    }

    /// Adds up to 1,000 jobs, once the returned [`AddMany`] is awaited: a result for each, in order.
    ///
    /// More than 1,000 are [`AddError::BatchTooLarge`], and nothing is sent.
    pub fn add_many<J: DelayJob>(&self, jobs: impl IntoIterator<Item = J>) -> AddMany {
        match self.of::<J>() {
            Ok(topic) => {
                topic.draft_many(jobs.into_iter().map(|job| (serde_json::to_vec(&job), job.job_id())), J::DEFAULTS)
            }
            Err(error) => AddMany::bad(error.into()),
        }
    }

    /// The delay of jobs of `J` that are added from now on, by this provider, without `after` or `at`; goes before that of
    /// the payload.
    ///
    /// # Errors
    /// [`AddError::BadDelay`] and [`AddError::DelayTooLong`]; then nothing is changed.
    pub fn set_default_delay<J: DelayJob>(&self, delay: impl IntoDelay) -> Result<(), AddError> {
        self.of::<J>()?.set_default_delay(delay)
    }

    /// Removes a job wherever it is; a running one ends as deleted when its run ends, however it ends.
    pub fn delete<J: DelayJob>(&self, id: impl ToJobId) -> SendCommand {
        self.of::<J>().map_or_else(SendCommand::bad, |topic| topic.delete(id))
    }

    /// As [`delete`](Self::delete), and the handler of a running one is asked to stop through its token.
    pub fn cancel<J: DelayJob>(&self, id: impl ToJobId) -> SendCommand {
        self.of::<J>().map_or_else(SendCommand::bad, |topic| topic.cancel(id))
    }

    /// Tells that a job is done: ends a parked or waiting one, or the run of a running one, also when it comes before the
    /// `park()` of that run.
    pub fn ack<J: DelayJob>(&self, id: impl ToJobId) -> SendRunCommand {
        self.of::<J>().map_or_else(|error| SendRunCommand::new(SendCommand::bad(error)), |topic| topic.ack(id))
    }

    /// Sends a DEAD job back with fresh attempts, or an UNACKED one as it was; it is due at once.
    pub fn requeue<J: DelayJob>(&self, id: impl ToJobId) -> SendRunCommand {
        self.of::<J>().map_or_else(|error| SendRunCommand::new(SendCommand::bad(error)), |topic| topic.requeue(id))
    }

    /// The job with this id, wherever it is; `None` when there is none.
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn get<J: DelayJob>(&self, id: impl ToJobId) -> Result<Option<Seen<J>>, QueryError> {
        self.of::<J>()?.get_id(id.to_job_id()?).await
    }

    /// How many jobs of the topic are where.
    ///
    /// # Errors
    /// [`QueryError`].
    pub async fn counts<J: DelayJob>(&self) -> Result<TopicCounts, QueryError> {
        self.of::<J>()?.counts().await
    }

    fn pages<J: DelayJob>(&self, state: State) -> Pages<J> {
        match self.of::<J>() {
            Ok(topic) => topic.pages(state),
            Err(error) => Pages::bad(error),
        }
    }

    /// Jobs that wait, earliest due first.
    pub fn waiting<J: DelayJob>(&self) -> Pages<J> {
        self.pages(State::Delayed)
    }

    /// Jobs that nodes hold, by node and id.
    pub fn running<J: DelayJob>(&self) -> Pages<J> {
        self.pages(State::Running)
    }

    /// Parked jobs, longest parked first.
    pub fn unacked<J: DelayJob>(&self) -> Pages<J> {
        self.pages(State::Unacked)
    }

    /// Jobs that were given up, with cause, error, attempts and payload; longest dead first.
    pub fn dead<J: DelayJob>(&self) -> Pages<J> {
        self.pages(State::Dead)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("app", &self.0.app.as_str()).field("store", &self.0.store.url()).finish()
    }
}

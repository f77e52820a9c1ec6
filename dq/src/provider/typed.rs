//! The typed form: the payload says the topic, its defaults and its id.

use super::add::Add;
use super::add_many::AddMany;
use super::error::{AddError, LookError};
use super::pages::Pages;
use super::root::Provider;
use super::seen::Seen;
use super::topic::TopicProvider;
use super::withdraw::{Withdraw, WithdrawRun};
use crate::job::{BadName, DelayJob, State, ToJobId};
use crate::store::TopicCounts;
use crate::time::IntoDelay;

impl Provider {
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
    pub fn delete<J: DelayJob>(&self, id: impl ToJobId) -> Withdraw {
        self.of::<J>().map_or_else(Withdraw::bad, |topic| topic.delete(id))
    }

    /// As [`delete`](Self::delete), and the handler of a running one is asked to stop through its token.
    pub fn cancel<J: DelayJob>(&self, id: impl ToJobId) -> Withdraw {
        self.of::<J>().map_or_else(Withdraw::bad, |topic| topic.cancel(id))
    }

    /// Tells that a job is done: ends a parked or waiting one, or the run of a running one, also when it comes before the
    /// `park()` of that run.
    pub fn ack<J: DelayJob>(&self, id: impl ToJobId) -> WithdrawRun {
        self.of::<J>().map_or_else(|error| WithdrawRun::new(Withdraw::bad(error)), |topic| topic.ack(id))
    }

    /// Sends a DEAD job back with fresh attempts, or an UNACKED one as it was; it is due at once.
    pub fn requeue<J: DelayJob>(&self, id: impl ToJobId) -> WithdrawRun {
        self.of::<J>().map_or_else(|error| WithdrawRun::new(Withdraw::bad(error)), |topic| topic.requeue(id))
    }

    /// The job with this id, wherever it is; `None` when there is none.
    ///
    /// # Errors
    /// [`LookError`].
    pub async fn get<J: DelayJob>(&self, id: impl ToJobId) -> Result<Option<Seen<J>>, LookError> {
        self.of::<J>()?.get_id(id.to_job_id()?).await
    }

    /// How many jobs of the topic are where.
    ///
    /// # Errors
    /// [`LookError`].
    pub async fn counts<J: DelayJob>(&self) -> Result<TopicCounts, LookError> {
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

//! Bulk changes by filter, in steps.

use super::filter::JobFilter;
use super::inspector::Inspector;
use crate::job::{JobId, State};
use crate::provider::{BulkResult, Call, CallError, Change, Refusal, TopicProvider};
use crate::store::{CommandKind, Cursor};
use crate::time::Timestamp;

/// What a bulk change does to each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkAction {
    /// Makes DEAD and UNACKED jobs due now.
    Requeue,
    /// Deletes jobs; running ones when their run ends.
    Delete,
    /// Makes jobs that wait due now.
    RunNow,
    /// Gives jobs that wait this due time.
    Reschedule(Timestamp),
}

/// A change of many jobs, in steps. Made by [`Inspector::bulk`].
#[derive(Debug, Clone)]
pub struct Bulk {
    inspector: Inspector,
    topic: TopicProvider,
    state: State,
    filter: JobFilter,
    action: BulkAction,
    after: Option<Cursor>,
    over: bool,
    progress: BulkResult,
}

impl Inspector {
    /// Makes a bulk change: `action` for every job in `state` that `filter` lets through, in steps; see [`Bulk::step`]. Nothing
    /// is done before the first step. Schedules are left alone; they have verbs of their own.
    ///
    /// # Errors
    /// [`CallError::Invalid`] if the name of the topic is not valid.
    pub fn bulk(&self, topic: &str, state: State, filter: JobFilter, action: BulkAction) -> Result<Bulk, CallError> {
        Ok(Bulk::new(self.clone(), self.of(topic)?, state, filter, action))
    }
}

impl Bulk {
    pub(super) fn new(
        inspector: Inspector,
        topic: TopicProvider,
        state: State,
        filter: JobFilter,
        action: BulkAction,
    ) -> Self {
        Self { inspector, topic, state, filter, action, after: None, over: false, progress: BulkResult::default() }
    }

    /// Continues where another bulk change stopped; see [`cursor`](Self::cursor).
    #[must_use]
    pub fn starting_after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Where the next step begins. Whoever keeps it can go on in another process.
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// How far it has come.
    pub const fn progress(&self) -> BulkResult {
        self.progress
    }

    /// Reads the next page and changes its jobs, at most 100; `None` once all are done. A job that another caller moves behind the
    /// cursor is met again, one that is moved before it is not.
    ///
    /// Cancel safe in this sense: if the future is dropped, part of the page may have been changed, and the next step begins with the same page.
    ///
    /// # Errors
    /// [`CallError`]; call it again to continue with the same page. Jobs of the page may have been changed.
    pub async fn step(&mut self) -> Result<Option<BulkResult>, CallError> {
        if self.over {
            return Ok(None);
        }
        let page =
            self.inspector.jobs(self.topic.name().as_str(), self.state, &self.filter, self.after.clone()).await?;
        let is_there = |at| matches!(self.action, BulkAction::Reschedule(due) if at == Some(due));
        let there = page.jobs.iter().filter(|job| is_there(job.at)).count();
        let ids = page.jobs.into_iter().filter(|job| !is_there(job.at)).map(|job| job.id);
        let ids: Vec<_> = ids.filter(|id| id.schedule_name().is_none()).collect();
        let count = ids.len();
        let changed = self.change(ids).await?;
        self.progress.looked_at += page.looked_at - there;
        self.progress.changed += changed;
        self.progress.untouched += count - changed;
        self.over = page.next.is_none();
        self.after = page.next.or_else(|| self.after.take());
        Ok(Some(self.progress))
    }

    /// Changes these jobs together, and says how many of them it changed.
    async fn change(&self, ids: Vec<JobId>) -> Result<usize, CallError> {
        let verb = match self.action {
            BulkAction::Requeue => CommandKind::Requeue,
            BulkAction::Delete => CommandKind::Delete,
            BulkAction::RunNow => return self.move_due(ids, |id| self.topic.run_now(id)).await,
            BulkAction::Reschedule(due) => return self.move_due(ids, |id| self.topic.reschedule(id, due)).await,
        };
        let mut changed = 0;
        for outcome in self.topic.command_many(verb, ids).await {
            changed += usize::from(outcome?.changed);
        }
        Ok(changed)
    }

    async fn move_due(&self, ids: Vec<JobId>, change: impl Fn(JobId) -> Call<Change>) -> Result<usize, CallError> {
        let mut changed = 0;
        for outcome in self.inspector.provider.change_many(ids.into_iter().map(change)).await? {
            changed += match outcome {
                Ok(_) => 1,
                Err(CallError::Refused { refusal: Refusal::NoSuchJob | Refusal::State(_), .. }) => 0,
                Err(error) => return Err(error),
            };
        }
        Ok(changed)
    }
}

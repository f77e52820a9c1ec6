//! Lists, page by page, and what can be done to a page as a whole.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::command::send_commands;
use super::error::{QueryError, SweepError};
use super::inbox::Inbox;
use super::query::query;
use super::root::Root;
use super::seen::Seen;
use crate::job::{BadName, State};
use crate::store::step::MOST_JOBS;
use crate::store::{CommandKind, Cursor, Page, PageRequest};

const USUAL_PAGE: usize = 100;

/// The jobs of one topic in one state, page by page.
///
/// A list is no snapshot: jobs that move while it is read may be missed or seen twice. Each page is one bounded read.
///
/// ```no_run
/// # async fn requeue(provider: dq::provider::Provider) -> Result<(), Box<dyn std::error::Error>> {
/// let mut dead = provider.topic("order-timeout")?.dead();
/// while let Some(swept) = dead.requeue_next().await? {
///     println!("{} requeued", swept.changed);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pages<P> {
    /// Whose jobs.
    inbox: Result<(Arc<Root>, Arc<Inbox>), BadName>,
    state: State,
    after: Option<Cursor>,
    limit: usize,
    over: bool,
    payload: PhantomData<fn() -> P>,
}

/// What was done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Jobs that were requeued or deleted, or are marked to be when their run ends.
    pub changed: usize,
    /// Jobs that had gone or moved meanwhile, so that nothing was done.
    pub untouched: usize,
}

impl<P> Pages<P> {
    pub(super) const fn new(root: Arc<Root>, inbox: Arc<Inbox>, state: State) -> Self {
        Self { inbox: Ok((root, inbox)), state, after: None, limit: USUAL_PAGE, over: false, payload: PhantomData }
    }

    pub(super) const fn bad(error: BadName) -> Self {
        Self {
            inbox: Err(error),
            state: State::Delayed,
            after: None,
            limit: USUAL_PAGE,
            over: false,
            payload: PhantomData,
        }
    }

    /// Jobs a page; 100 unless said, 1 to 1,000.
    #[must_use]
    pub fn per_page(mut self, jobs: usize) -> Self {
        self.limit = jobs.clamp(1, MOST_JOBS);
        self
    }

    /// Goes on where another list stood; see [`cursor`](Self::cursor).
    #[must_use]
    pub fn starting_after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Where the next page starts; `None` at the start.
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    async fn read(&self) -> Result<Page, QueryError> {
        let (root, inbox) = self.inbox.as_ref().map_err(BadName::clone)?;
        let request = PageRequest { state: self.state, after: self.after.clone(), limit: self.limit };
        query(root, &inbox.key, move |store, key| {
            let request = request.clone();
            Box::pin(async move { store.page(&key, request).await })
        })
        .await
    }

    fn go_on_behind(&mut self, next: Option<Cursor>) {
        self.over = next.is_none();
        self.after = next.or_else(|| self.after.take());
    }

    /// The next page; `None` when there are no more. Cancel safe: dropped, it stays where it was.
    ///
    /// # Errors
    /// [`QueryError`]; the same call tries the same page again.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Seen<P>>>, QueryError> {
        if self.over {
            return Ok(None);
        }
        let page = self.read().await?;
        self.go_on_behind(page.next);
        Ok(Some(page.jobs.into_iter().map(Seen::new).collect()).filter(|jobs: &Vec<_>| !jobs.is_empty()))
    }

    /// Requeues the next page of DEAD or UNACKED jobs; `None` when there are no more.
    ///
    /// # Errors
    /// [`SweepError`]; the same call goes on with what is left of the page.
    pub async fn requeue_next(&mut self) -> Result<Option<Swept>, SweepError> {
        self.sweep(CommandKind::Requeue).await
    }

    /// Deletes the next page of jobs; `None` when there are no more. A job that moved since its page was read is deleted
    /// all the same.
    ///
    /// # Errors
    /// [`SweepError`]; the same call goes on with what is left of the page.
    pub async fn delete_next(&mut self) -> Result<Option<Swept>, SweepError> {
        self.sweep(CommandKind::Delete).await
    }

    async fn sweep(&mut self, verb: CommandKind) -> Result<Option<Swept>, SweepError> {
        if self.over {
            return Ok(None);
        }
        let page = self.read().await?;
        let (root, inbox) = self.inbox.as_ref().map_err(|error| QueryError::from(error.clone()))?;
        let ids: Vec<_> = page.jobs.into_iter().map(|job| job.id).collect();
        let mut swept = Swept::default();
        for outcome in send_commands(Arc::clone(root), Arc::clone(inbox), verb, ids).await {
            match outcome?.changed {
                true => swept.changed += 1,
                false => swept.untouched += 1,
            }
        }
        self.go_on_behind(page.next);
        Ok(Some(swept).filter(|swept| *swept != Swept::default()))
    }
}

impl<P> fmt::Debug for Pages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("topic", &self.inbox.as_ref().map(|(_, inbox)| &inbox.key))
            .field("state", &self.state)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

//! Lists of jobs, page by page, and commands for a whole page.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::command::command_many;
use super::error::{QueryError, SweepError};
use super::inbox::Inbox;
use super::limit;
use super::query::query;
use super::root::Root;
use super::seen::Seen;
use crate::job::{BadName, State};
use crate::store::step::{MOST_JOBS, USUAL_BYTES};
use crate::store::{CommandKind, Cursor, Page, PageRequest};
use crate::time::{Delay, IntoDelay};

const USUAL_PAGE: usize = 100;

/// The jobs of one topic in one state, page by page.
///
/// A list is no snapshot: a job that moves while the list is read may be missing or appear twice, and on Redis a RUNNING job may
/// appear twice anyway, while the server's table of them grows. Each page is one read of
/// the store, of at most 1 MiB or one larger job.
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
    /// The topic, or why it cannot be one.
    inbox: Result<(Arc<Root>, Arc<Inbox>), BadName>,
    state: State,
    after: Option<Cursor>,
    limit: usize,
    over: bool,
    within: Option<Delay>,
    /// The name of the caller.
    by: Option<Arc<str>>,
    payload: PhantomData<fn() -> P>,
}

/// The result of a command for a whole page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Jobs that were requeued or deleted, or that have a pending command to do so when their run ends.
    pub changed: usize,
    /// Jobs that had gone or moved since the page was read, so that nothing was done to them.
    pub untouched: usize,
}

impl<P> Pages<P> {
    pub(super) const fn new(root: Arc<Root>, inbox: Arc<Inbox>, state: State, by: Option<Arc<str>>) -> Self {
        Self::of(Ok((root, inbox)), state, by)
    }

    pub(super) const fn bad(error: BadName) -> Self {
        Self::of(Err(error), State::Delayed, None)
    }

    const fn of(inbox: Result<(Arc<Root>, Arc<Inbox>), BadName>, state: State, by: Option<Arc<str>>) -> Self {
        Self { inbox, state, after: None, limit: USUAL_PAGE, over: false, within: None, by, payload: PhantomData }
    }

    /// Sets how long each call for a page may wait for the store, instead of the setting `call_total` (10 s by default): a
    /// `Duration` or a text such as `"500ms"`, at most an hour. Reading a page and a command for its jobs are two such waits.
    #[must_use]
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        self.within = Some(time.into_delay());
        self
    }

    /// Sets how many jobs a page has at most: 1 to 1,000, by default 100. Other numbers become the nearest of these.
    #[must_use]
    pub fn per_page(mut self, jobs: usize) -> Self {
        self.limit = jobs.clamp(1, MOST_JOBS);
        self
    }

    /// Continues where another list stopped; see [`cursor`](Self::cursor).
    #[must_use]
    pub fn starting_after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Where the next page starts; `None` before the first page.
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    async fn read(&self) -> Result<Page, QueryError> {
        let (root, inbox) = self.inbox.as_ref().map_err(BadName::clone)?;
        let request =
            PageRequest { state: self.state, after: self.after.clone(), limit: self.limit, bytes: USUAL_BYTES };
        let within = self.time()?;
        query(root, &inbox.key, within, move |store, key, tries| {
            // The answer may have been more than the link can carry in time.
            let halved = |most: usize| most.checked_shr(tries).unwrap_or_default().max(1);
            let request = PageRequest { limit: halved(request.limit), bytes: halved(request.bytes), ..request.clone() };
            Box::pin(async move { store.page(&key, request).await })
        })
        .await
    }

    fn time(&self) -> Result<Option<Duration>, QueryError> {
        limit::read(self.within.clone()).map_err(QueryError::BadWithin)
    }

    fn continue_after(&mut self, next: Option<Cursor>) {
        self.over = next.is_none();
        self.after = next.or_else(|| self.after.take());
    }

    /// Reads the next page; `None` after the last. Cancel safe: if the future is dropped, the list stays where it was.
    ///
    /// # Errors
    /// [`QueryError`]; call it again to read the same page.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Seen<P>>>, QueryError> {
        if self.over {
            return Ok(None);
        }
        let mut page = self.read().await?;
        self.continue_after(page.next);
        // A page without jobs need not be the last.
        while page.jobs.is_empty() && !self.over {
            page = self.read().await?;
            self.continue_after(page.next);
        }
        Ok(Some(page.jobs.into_iter().map(Seen::new).collect()).filter(|jobs: &Vec<_>| !jobs.is_empty()))
    }

    /// Requeues the next page of DEAD or UNACKED jobs; `None` after the last. If the future is dropped, part of the page may
    /// be requeued.
    ///
    /// # Errors
    /// [`SweepError`]; call it again to continue with the rest of the page.
    pub async fn requeue_next(&mut self) -> Result<Option<Swept>, SweepError> {
        self.sweep(CommandKind::Requeue).await
    }

    /// Deletes the next page of jobs; `None` after the last. It also deletes a job that moved since the page was read. If the
    /// future is dropped, part of the page may be deleted.
    ///
    /// # Errors
    /// [`SweepError`]; call it again to continue with the rest of the page.
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
        for outcome in command_many(root, inbox, verb, ids, self.by.as_ref(), self.time()?).await {
            match outcome?.changed {
                true => swept.changed += 1,
                false => swept.untouched += 1,
            }
        }
        self.continue_after(page.next);
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

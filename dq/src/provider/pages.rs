//! Lists, page by page: of jobs, with commands for a whole page, and of schedules.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;

use super::command::command_many;
use super::error::{CallError, Doing};
use super::inputs::read_within;
use super::query::{Asking, query};
use super::root::Caller;
use super::seen::{JobInfo, ScheduleInfo};
use crate::job::{InvalidName, JobId, State, TopicKey};
use crate::schedule::{schedule_id, schedule_name};
use crate::store::step::{DEFAULT_BYTES, MAX_JOBS};
use crate::store::{CommandKind, Cursor, Page, PageRequest, Store, Stored};
use crate::time::{Delay, IntoDelay};

const DEFAULT_PAGE: usize = 100;

/// Where a list stands.
struct List<C> {
    /// The topic, or why it cannot be one.
    caller: Result<Caller, InvalidName>,
    after: Option<C>,
    limit: usize,
    over: bool,
    within: Option<Delay>,
}

impl<C> List<C> {
    const fn new(caller: Result<Caller, InvalidName>) -> Self {
        Self { caller, after: None, limit: DEFAULT_PAGE, over: false, within: None }
    }

    fn caller(&self) -> Result<(&Caller, Option<Duration>), CallError> {
        let caller = self.caller.as_ref().map_err(InvalidName::clone)?;
        Ok((caller, read_within(self.within.clone())?))
    }

    fn continue_after(&mut self, next: Option<C>) {
        self.over = next.is_none();
        self.after = next.or_else(|| self.after.take());
    }
}

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
pub struct JobPages<P> {
    list: List<Cursor>,
    state: State,
    payload: PhantomData<fn() -> P>,
}

/// What became of the jobs of a page, or of those that a [bulk change](crate::inspect::Bulk) has come to so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct BulkResult {
    /// Jobs that were looked at; in a bulk change those that have the time of a reschedule already do not count.
    pub looked_at: usize,
    /// Jobs that were changed, or that have a pending command for the end of their run.
    pub changed: usize,
    /// Jobs that had gone or moved since they were read, so that nothing was done to them.
    pub untouched: usize,
}

impl<P> JobPages<P> {
    pub(super) const fn new(caller: Result<Caller, InvalidName>, state: State) -> Self {
        Self { list: List::new(caller), state, payload: PhantomData }
    }

    /// Sets how long each call for a page may wait for the store, instead of the setting `call_deadline` (10 s by default): a
    /// `Duration` or a text such as `"500ms"`, at most an hour. Reading a page and a command for its jobs are two such waits.
    #[must_use]
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        self.list.within = Some(time.into_delay());
        self
    }

    /// Sets how many jobs a page has at most: 1 to 1,000, by default 100. Other numbers become the nearest of these.
    #[must_use]
    pub fn per_page(mut self, jobs: usize) -> Self {
        self.list.limit = jobs.clamp(1, MAX_JOBS);
        self
    }

    /// Continues where another list stopped; see [`cursor`](Self::cursor).
    #[must_use]
    pub fn starting_after(mut self, cursor: Cursor) -> Self {
        self.list.after = Some(cursor);
        self
    }

    /// Where the next page starts; `None` before the first page.
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.list.after.as_ref()
    }

    async fn read(&self) -> Result<Page, CallError> {
        let (caller, within) = self.list.caller()?;
        let (after, limit) = (self.list.after.clone(), self.list.limit);
        let request = PageRequest { state: self.state, after, limit, bytes: DEFAULT_BYTES };
        query(&caller.root, caller.target(Doing::Query), within, request, page).await
    }

    /// Reads the next page; `None` after the last. Cancel safe: if the future is dropped, the list stays where it was.
    ///
    /// # Errors
    /// [`CallError`]; call it again to read the same page.
    pub async fn next_page(&mut self) -> Result<Option<Vec<JobInfo<P>>>, CallError> {
        if self.list.over {
            return Ok(None);
        }
        let mut page = self.read().await?;
        self.list.continue_after(page.next);
        // A page without jobs need not be the last.
        while page.jobs.is_empty() && !self.list.over {
            page = self.read().await?;
            self.list.continue_after(page.next);
        }
        Ok(Some(page.jobs.into_iter().map(JobInfo::new).collect()).filter(|jobs: &Vec<_>| !jobs.is_empty()))
    }

    /// Requeues the next page of DEAD or UNACKED jobs; `None` after the last. If the future is dropped, part of the page may
    /// be requeued.
    ///
    /// # Errors
    /// [`CallError`]; call it again to continue with the rest of the page.
    pub async fn requeue_next(&mut self) -> Result<Option<BulkResult>, CallError> {
        self.sweep(CommandKind::Requeue).await
    }

    /// Deletes the next page of jobs; `None` after the last. It also deletes a job that moved since the page was read. If the
    /// future is dropped, part of the page may be deleted.
    ///
    /// # Errors
    /// [`CallError`]; call it again to continue with the rest of the page.
    pub async fn delete_next(&mut self) -> Result<Option<BulkResult>, CallError> {
        self.sweep(CommandKind::Delete).await
    }

    async fn sweep(&mut self, verb: CommandKind) -> Result<Option<BulkResult>, CallError> {
        if self.list.over {
            return Ok(None);
        }
        let page = self.read().await?;
        let (caller, within) = self.list.caller()?;
        let ids: Vec<_> = page.jobs.into_iter().map(|job| job.id).collect();
        let mut swept = BulkResult { looked_at: ids.len(), ..BulkResult::default() };
        for outcome in command_many(caller, verb, ids, within).await {
            match outcome?.changed {
                true => swept.changed += 1,
                false => swept.untouched += 1,
            }
        }
        self.list.continue_after(page.next);
        Ok(Some(swept).filter(|swept| *swept != BulkResult::default()))
    }
}

impl<P> fmt::Debug for JobPages<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobPages")
            .field("topic", &self.list.caller)
            .field("state", &self.state)
            .field("after", &self.list.after)
            .finish_non_exhaustive()
    }
}

/// Asks for a page, and for half as much after each try: the answer may have been more than the link can carry in time.
pub(super) fn page<'a>(store: &'a dyn Store, key: &'a TopicKey, request: &PageRequest, tries: u32) -> Asking<'a, Page> {
    let half = |most: usize| most.checked_shr(tries).unwrap_or_default().max(1);
    store.page(key, PageRequest { limit: half(request.limit), bytes: half(request.bytes), ..request.clone() })
}

/// The schedules of one topic in the order of their names, page by page. Made by
/// [`Provider::schedules`](super::Provider::schedules).
///
/// It is no snapshot: a schedule that is added or removed meanwhile may be there or not. Each page is two reads of the store; the
/// second has at most 1 MiB or one larger schedule, and is repeated for the rest of the page.
pub struct SchedulePages(List<JobId>);

impl SchedulePages {
    pub(super) const fn new(caller: Result<Caller, InvalidName>) -> Self {
        Self(List::new(caller))
    }

    /// Sets how many schedules a page has at most: 1 to 1,000, by default 100. Other numbers become the nearest of these.
    #[must_use]
    pub fn per_page(mut self, schedules: usize) -> Self {
        self.0.limit = schedules.clamp(1, MAX_JOBS);
        self
    }

    /// Starts after this schedule, which need not exist. A text that cannot be a name is left out.
    #[must_use]
    pub fn starting_after(mut self, name: &str) -> Self {
        self.0.after = schedule_id(name).ok().or(self.0.after);
        self
    }

    /// Sets how long each read may wait for the store, instead of the setting `call_deadline` (10 s by default): a `Duration` or a text
    /// such as `"500ms"`, at most an hour.
    #[must_use]
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        self.0.within = Some(time.into_delay());
        self
    }

    /// Reads the next page; `None` after the last. A page may be shorter than asked, or empty, and not be the last. Cancel safe: if the
    /// future is dropped, the list stays where it was.
    ///
    /// # Errors
    /// [`CallError`]; call it again to read the same page.
    pub async fn next_page(&mut self) -> Result<Option<Vec<ScheduleInfo>>, CallError> {
        if self.0.over {
            return Ok(None);
        }
        let (caller, within) = self.0.caller()?;
        let limit = self.0.limit;
        let (target, after) = (caller.target(Doing::Query), self.0.after.clone());
        let ids = query(&caller.root, target, within, after, move |store, key, after, _| {
            store.schedules(key, after.as_ref(), limit)
        });
        let ids = ids.await?;
        let found = stored(caller, &ids, within).await?;
        let seen = found.into_iter().flatten().filter_map(|stored| {
            let name = schedule_name(&stored.id)?.to_owned();
            Some(ScheduleInfo::new(caller, name, &stored))
        });
        let seen: Vec<_> = seen.collect();
        self.0.over = ids.len() < limit;
        self.0.after = ids.last().cloned().or(self.0.after.take());
        Ok(Some(seen).filter(|seen| !seen.is_empty() || !self.0.over))
    }
}

/// What the store has under these ids, with as many reads as that takes.
pub(super) async fn stored(
    caller: &Caller,
    ids: &[JobId],
    within: Option<Duration>,
) -> Result<Vec<Option<Stored>>, CallError> {
    let mut found = Vec::with_capacity(ids.len());
    while found.len() < ids.len() {
        let rest: Vec<_> = ids[found.len()..].iter().take(MAX_JOBS).cloned().collect();
        let target = caller.target(Doing::Query);
        let part = query(&caller.root, target, within, rest, |store, key, rest, _| store.get(key, rest));
        found.extend(part.await?);
    }
    Ok(found)
}

impl fmt::Debug for SchedulePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulePages").field("after", &self.0.after).finish_non_exhaustive()
    }
}

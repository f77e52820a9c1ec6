//! The schedules of a topic, page by page.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::QueryError;
use super::inbox::Inbox;
use super::limit;
use super::query::query;
use super::root::Root;
use super::seen_schedule::SeenSchedule;
use crate::job::{BadName, JobId, TopicKey};
use crate::schedule::{schedule_id, schedule_name};
use crate::store::Stored;
use crate::store::step::MOST_JOBS;
use crate::time::{Delay, IntoDelay};

const USUAL_PAGE: usize = 100;

/// The schedules of one topic in the order of their names, page by page. Made by
/// [`Provider::schedules`](super::Provider::schedules).
///
/// It is no snapshot: a schedule that is added or removed meanwhile may be there or not. Each page is two reads of the store; the
/// second has at most 1 MiB or one larger schedule, and is repeated for the rest of the page.
pub struct Schedules {
    inbox: Result<(Arc<Root>, Arc<Inbox>), BadName>,
    after: Option<JobId>,
    limit: usize,
    over: bool,
    within: Option<Delay>,
}

impl Schedules {
    pub(super) const fn new(inbox: Result<(Arc<Root>, Arc<Inbox>), BadName>) -> Self {
        Self { inbox, after: None, limit: USUAL_PAGE, over: false, within: None }
    }

    /// Sets how many schedules a page has at most: 1 to 1,000, by default 100. Other numbers become the nearest of these.
    #[must_use]
    pub fn per_page(mut self, schedules: usize) -> Self {
        self.limit = schedules.clamp(1, MOST_JOBS);
        self
    }

    /// Begins behind the schedule of this name, which need not exist. A text that cannot be a name is left out.
    #[must_use]
    pub fn starting_after(mut self, name: &str) -> Self {
        self.after = schedule_id(name).ok().or(self.after);
        self
    }

    /// Sets how long each read may wait for the store, instead of the setting `call_total` (10 s by default): a `Duration` or a text
    /// such as `"500ms"`, at most an hour.
    #[must_use]
    pub fn within(mut self, time: impl IntoDelay) -> Self {
        self.within = Some(time.into_delay());
        self
    }

    /// Reads the next page; `None` after the last. A page may be shorter than asked, or empty, and not be the last. Cancel safe: if the
    /// future is dropped, the list stays where it was.
    ///
    /// # Errors
    /// [`QueryError`]; call it again to read the same page.
    pub async fn next_page(&mut self) -> Result<Option<Vec<SeenSchedule>>, QueryError> {
        if self.over {
            return Ok(None);
        }
        let (root, inbox) = self.inbox.as_ref().map_err(BadName::clone)?;
        let within = limit::read(self.within.clone()).map_err(QueryError::BadWithin)?;
        let (after, limit) = (self.after.clone(), self.limit);
        let ids = query(root, &inbox.key, within, move |store, key, _| {
            let after = after.clone();
            Box::pin(async move { store.schedules(&key, after.as_ref(), limit).await })
        });
        let ids = ids.await?;
        let found = stored(root, &inbox.key, &ids, within).await?;
        let seen = found.into_iter().flatten().filter_map(|stored| {
            let name = schedule_name(&stored.id)?.to_owned();
            Some(SeenSchedule::new(root, inbox, name, &stored))
        });
        let seen: Vec<_> = seen.collect();
        self.over = ids.len() < self.limit;
        self.after = ids.last().cloned().or(self.after.take());
        Ok(Some(seen).filter(|seen| !seen.is_empty() || !self.over))
    }
}

/// What the store has under these ids, with as many reads as that takes.
pub(super) async fn stored(
    root: &Root,
    key: &TopicKey,
    ids: &[JobId],
    within: Option<Duration>,
) -> Result<Vec<Option<Stored>>, QueryError> {
    let mut found = Vec::with_capacity(ids.len());
    while found.len() < ids.len() {
        let rest: Vec<_> = ids[found.len()..].iter().take(MOST_JOBS).cloned().collect();
        let part = query(root, key, within, move |store, key, _| {
            let rest = rest.clone();
            Box::pin(async move { store.get(&key, &rest).await })
        });
        found.extend(part.await?);
    }
    Ok(found)
}

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedules").field("after", &self.after).finish_non_exhaustive()
    }
}

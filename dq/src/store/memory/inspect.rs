//! The queries: jobs by id, pages of one place, and counts. They change nothing.

use super::now::Now;
use super::places::{Place, Slot, TimedPlace, fitting};
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, State};
use crate::store::step::USUAL_BYTES;
use crate::store::{Cursor, JobPlace, Page, PageRequest, StoreError, Stored, TopicCounts};
use crate::time::Timestamp;

impl Topic {
    /// The jobs with these ids. As in every store, the answer does not name the node that runs a job.
    pub(crate) fn get(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        within("the number of ids", ids.len())?;
        let mut found: Vec<_> = ids.iter().map(|id| self.get_one(id)).collect();
        found.truncate(fitting(found.iter().map(|job| job.as_ref().map_or(0, size)), USUAL_BYTES));
        Ok(found)
    }

    fn get_one(&self, id: &JobId) -> Option<Stored> {
        let slot = self.jobs.get(id);
        if slot.is_none_or(|slot| slot.place.state() == State::Done)
            && let Some((due, record)) = self.broadcasts.get(id)
        {
            return Some(Stored {
                id: id.clone(),
                record: record.clone(),
                place: JobPlace::Delayed { due: *due },
                crashes: 0,
            });
        }
        let slot = slot?;
        let mut stored = Stored { crashes: slot.crashes, ..stored(id, slot) };
        if let JobPlace::Running { holder } = &mut stored.place {
            *holder = None;
        }
        Some(stored)
    }

    /// A page of one place. O(limit log n).
    pub(crate) fn page(&self, request: &PageRequest) -> Result<Page, StoreError> {
        within("the limit of a page", request.limit)?;
        let limit = request.limit.max(1);
        let shelf = match request.state {
            State::Running => return self.page_of_runs(request.after.as_ref(), limit, request.bytes),
            State::Delayed => TimedPlace::Delayed,
            State::Unacked => TimedPlace::Unacked,
            State::Dead => TimedPlace::Dead,
            State::Done => TimedPlace::Done,
        };
        let after = request.after.as_ref().map(|cursor| Ok((cursor.at, job_id(&cursor.id)?))).transpose()?;
        let mut ids = self.jobs.index(shelf).after(after);
        let page: Vec<_> = ids.by_ref().take(limit).collect();
        let jobs = page.iter().filter_map(|(_, id)| Some(stored(id, self.jobs.get(id)?))).collect();
        let cursor = |n: usize| page.get(n).map(|(at, id)| Cursor { at: *at, id: id.to_string() });
        Ok(cut(jobs, request.bytes, ids.next().is_some(), cursor))
    }

    /// The schedules behind this one, in the order of their ids.
    pub(crate) fn schedules(&self, after: Option<&JobId>, limit: usize) -> Result<Vec<JobId>, StoreError> {
        within("the limit of a page", limit)?;
        Ok(self.jobs.schedules_after(after).take(limit.max(1)).cloned().collect())
    }

    fn page_of_runs(&self, after: Option<&Cursor>, limit: usize, bytes: usize) -> Result<Page, StoreError> {
        let after = after.map(row).transpose()?;
        let mut rows = self.jobs.rows_after(after.as_ref());
        let page: Vec<_> = rows.by_ref().take(limit).collect();
        let jobs = page.iter().filter_map(|(_, id)| Some(stored(id, self.jobs.get(id)?))).collect();
        let cursor =
            |n: usize| page.get(n).map(|(node, id)| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{id}") });
        Ok(cut(jobs, bytes, rows.next().is_some(), cursor))
    }

    /// The number of jobs in each place. O(leaves with due jobs + nodes).
    pub(crate) fn counts(&self, now: Now) -> TopicCounts {
        let delayed = self.jobs.index(TimedPlace::Delayed);
        TopicCounts {
            clock: now.floor(),
            delayed: delayed.len(),
            ready: delayed.count_due(now.floor()),
            running: self.jobs.in_runs(),
            unacked: self.jobs.index(TimedPlace::Unacked).len(),
            dead: self.jobs.index(TimedPlace::Dead).len(),
            done: self.jobs.index(TimedPlace::Done).len(),
            broadcasts: self.broadcasts.len(),
            head: delayed.head(),
        }
    }
}

fn size(job: &Stored) -> usize {
    job.record.as_bytes().len()
}

/// The page of these jobs, cut to its bytes. `cursor(n)` leads behind job `n`.
fn cut(mut jobs: Vec<Stored>, bytes: usize, more: bool, cursor: impl Fn(usize) -> Option<Cursor>) -> Page {
    let count = fitting(jobs.iter().map(size), bytes);
    let more = more || count < jobs.len();
    jobs.truncate(count);
    Page { jobs, next: count.checked_sub(1).filter(|_| more).and_then(cursor) }
}

pub(super) fn job_id(text: &str) -> Result<JobId, StoreError> {
    JobId::new(text).map_err(|bad| bad_cursor(&bad.to_string()))
}

/// The row that a cursor of RUNNING jobs names.
pub(super) fn row(cursor: &Cursor) -> Result<(NodeId, JobId), StoreError> {
    let (node, id) = cursor.id.split_once('/').ok_or_else(|| bad_cursor("it names no node"))?;
    Ok((NodeId::new(node), job_id(id)?))
}

fn bad_cursor(why: &str) -> StoreError {
    StoreError::Other { operation: "page", source: format!("the cursor was not given by this store: {why}").into() }
}

fn stored(id: &JobId, slot: &Slot) -> Stored {
    let place = match &slot.place {
        Place::Timed(TimedPlace::Delayed, due) => JobPlace::Delayed { due: *due },
        Place::Timed(TimedPlace::Unacked, since) => JobPlace::Unacked { since: *since },
        Place::Timed(TimedPlace::Dead, since) => JobPlace::Dead { since: *since },
        Place::Timed(TimedPlace::Done, until) => JobPlace::Done { until: *until },
        Place::Running(run) => JobPlace::Running { holder: Some((run.node.clone(), run.token.fence)) },
    };
    Stored { id: id.clone(), record: slot.record.clone(), place, crashes: 0 }
}

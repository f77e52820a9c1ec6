//! Looking at a topic: reads only.

use std::ops::Bound;

use super::now::Now;
use super::places::{Place, Shelf, Slot};
use super::topic::{Topic, within};
use crate::job::{JobId, NodeId, State};
use crate::store::{Cursor, JobPlace, Page, PageRequest, StoreError, Stored, TopicCounts};
use crate::time::Timestamp;

impl Topic {
    /// The jobs with these ids. Like every store it does not say which node runs a job.
    pub(crate) fn get(&self, ids: &[JobId]) -> Result<Vec<Option<Stored>>, StoreError> {
        within("the number of ids", ids.len())?;
        Ok(ids.iter().map(|id| self.get_one(id)).collect())
    }

    fn get_one(&self, id: &JobId) -> Option<Stored> {
        let slot = self.jobs.get(id);
        if slot.is_none_or(|slot| slot.place.state() == State::Done)
            && let Some((due, record)) = self.broadcasts.get(id)
        {
            return Some(Stored { id: id.clone(), record: record.clone(), place: JobPlace::Delayed { due: *due } });
        }
        let mut stored = stored(id, slot?);
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
            State::Running => return self.page_of_runs(request.after.as_ref(), limit),
            State::Delayed => Shelf::Delayed,
            State::Unacked => Shelf::Unacked,
            State::Dead => Shelf::Dead,
            State::Done => Shelf::Done,
        };
        let after = request.after.as_ref().map(|cursor| Ok((cursor.at, job_id(&cursor.id)?))).transpose()?;
        let mut ids = self.jobs.shelf(shelf).behind(after);
        let page: Vec<_> = ids.by_ref().take(limit).collect();
        let last = page.last().filter(|_| ids.next().is_some());
        let next = last.map(|(at, id)| Cursor { at: *at, id: id.to_string() });
        let jobs = page.iter().filter_map(|(_, id)| Some(stored(id, self.jobs.get(id)?))).collect();
        Ok(Page { jobs, next })
    }

    fn page_of_runs(&self, after: Option<&Cursor>, limit: usize) -> Result<Page, StoreError> {
        let split = |cursor: &Cursor| cursor.id.split_once('/').map(|(node, id)| (NodeId::new(node), id.to_owned()));
        let after = match after.map(|cursor| split(cursor).ok_or_else(|| bad_cursor("it names no node"))).transpose()? {
            Some((node, id)) => Some((node, job_id(&id)?)),
            None => None,
        };
        let nodes = match &after {
            Some((node, _)) => self.jobs.holders().range(node..),
            None => self.jobs.holders().range::<NodeId, _>(..),
        };
        let mut rows = nodes.flat_map(|(node, holder)| {
            let behind = after.as_ref().filter(|(last, _)| last == node).map(|(_, id)| id);
            let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
            holder.rows.range::<JobId, _>((from, Bound::Unbounded)).map(move |id| (node, id))
        });
        let page: Vec<_> = rows.by_ref().take(limit).collect();
        let last = page.last().filter(|_| rows.next().is_some());
        let next = last.map(|(node, id)| Cursor { at: Timestamp::EPOCH, id: format!("{node}/{id}") });
        let jobs = page.iter().filter_map(|(_, id)| Some(stored(id, self.jobs.get(id)?))).collect();
        Ok(Page { jobs, next })
    }

    /// How many jobs are where. O(jobs that are due), because those are counted.
    pub(crate) fn counts(&self, now: Now) -> TopicCounts {
        let delayed = self.jobs.shelf(Shelf::Delayed);
        TopicCounts {
            clock: now.floor(),
            delayed: delayed.len(),
            ready: delayed.count_due(now.floor()),
            running: self.jobs.in_runs(),
            unacked: self.jobs.shelf(Shelf::Unacked).len(),
            dead: self.jobs.shelf(Shelf::Dead).len(),
            done: self.jobs.shelf(Shelf::Done).len(),
            broadcasts: self.broadcasts.len(),
            head: delayed.head(),
        }
    }
}

fn job_id(text: &str) -> Result<JobId, StoreError> {
    JobId::new(text).map_err(|bad| bad_cursor(&bad.to_string()))
}

fn bad_cursor(why: &str) -> StoreError {
    StoreError::Other { operation: "page", source: format!("the cursor was not given by this store: {why}").into() }
}

fn stored(id: &JobId, slot: &Slot) -> Stored {
    let place = match &slot.place {
        Place::On(Shelf::Delayed, due) => JobPlace::Delayed { due: *due },
        Place::On(Shelf::Unacked, since) => JobPlace::Unacked { since: *since },
        Place::On(Shelf::Dead, since) => JobPlace::Dead { since: *since },
        Place::On(Shelf::Done, until) => JobPlace::Done { until: *until },
        Place::Running(run) => JobPlace::Running { holder: Some((run.node.clone(), run.token.fence)) },
    };
    Stored { id: id.clone(), record: slot.record.clone(), place }
}

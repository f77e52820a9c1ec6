//! The queries: jobs by id, pages of one place, exports (rule 27), histories, counts, and the topic as a whole. They change nothing.

use std::ops::Bound;

use super::now::Now;
use super::places::{Holder, Place, Slot, fitting};
use super::topic::Topic;
use crate::job::{JobId, JobState, NodeId, Record, State, TopicKey, TopicName};
use crate::store::history::read;
use crate::store::step::DEFAULT_BYTES;
use crate::store::{
    Cursor, DueCount, Examine, Examined, Exported, ForeignRow, HeldJob, HolderPage, HolderSeen, JobCopy, JobHistory,
    MAX_EXAMINED, NodesRequest, OutboxEntry, Page, PageRequest, QueryReply, StoreError, Stored, TopicCounts,
    TopicOverview,
};
use crate::time::Timestamp;

impl Topic {
    /// The jobs with these ids. As in every store, the answer does not name the node that runs a job.
    pub(crate) fn get(&self, ids: &[JobId]) -> Vec<Option<Stored>> {
        let mut found: Vec<_> = ids.iter().map(|id| self.get_one(id)).collect();
        found.truncate(fitting(found.iter().map(|job| job.as_ref().map_or(0, size)), DEFAULT_BYTES));
        found
    }

    fn get_one(&self, id: &JobId) -> Option<Stored> {
        let slot = self.jobs.get(id);
        if slot.is_none_or(|slot| slot.place.state() == State::Done)
            && let Some((due, record)) = self.broadcasts.get(id)
        {
            return Some(Stored {
                id: id.clone(),
                record: record.clone(),
                place: JobState::Delayed { due: *due },
                crashes: 0,
                progress: None,
            });
        }
        let slot = slot?;
        let progress = slot.run().and_then(|run| run.notes.as_ref()?.progress.clone());
        let mut stored = Stored { crashes: slot.crashes, progress, ..stored(id, slot) };
        if let JobState::Running { holder } = &mut stored.place {
            *holder = None;
        }
        Some(stored)
    }

    /// The moves of a job, oldest first.
    pub(crate) fn history(&self, id: &JobId) -> Option<JobHistory> {
        self.histories.kept.get(id).map(|history| read(&history.text))
    }

    /// A page of the jobs in one state. O(limit log n).
    pub(crate) fn page(&self, request: &PageRequest) -> Result<Page, StoreError> {
        let (jobs, next) = if request.state == State::Running {
            let read = |(_, id): (_, &JobId)| Some(stored(id, self.jobs.get(id)?));
            page_of(self.runs(request)?, request, read, size, behind_run)
        } else {
            let (copies, next) = self.placed(request, false)?;
            (copies.into_iter().map(JobCopy::into_stored).collect(), next)
        };
        Ok(Page { jobs, next })
    }

    /// A page of the jobs in one state, which is not RUNNING, or of the broadcasts, with all that is kept of each. O(limit log n).
    fn placed(&self, request: &PageRequest, is_broadcast: bool) -> Result<(Vec<JobCopy>, Option<Cursor>), StoreError> {
        let after = request.after.as_ref().map(timed).transpose()?;
        let ids: Box<dyn Iterator<Item = &(Timestamp, JobId)>> = match is_broadcast {
            true => Box::new(self.broadcasts.by_due().after(after)),
            false => Box::new(self.jobs.index(request.state).after(after)),
        };
        let copy = |(at, id): &(Timestamp, JobId)| {
            let (record, crashes) = match is_broadcast {
                true => (&self.broadcasts.get(id)?.1, 0),
                false => self.jobs.get(id).map(|slot| (&slot.record, slot.crashes))?,
            };
            let copy = JobCopy::new(id.clone(), record.clone(), request.state, *at);
            Some(JobCopy { crashes, is_broadcast, ..copy })
        };
        Ok(page_of(ids, request, copy, |copy| copy.record.as_bytes().len(), behind))
    }

    /// The RUNNING jobs behind this one, each with its node.
    fn runs(&self, request: &PageRequest) -> Result<impl Iterator<Item = (&NodeId, &JobId)>, StoreError> {
        Ok(self.jobs.rows_after(request.after.as_ref().map(row).transpose()?))
    }

    /// A page of what the doctor looks at: follow-ups that this version of dq cannot read.
    pub(crate) fn examined(&self, topic: &TopicKey, request: &Examine) -> QueryReply {
        let at = request.after.as_deref().and_then(|after| after.split_once(' '));
        let at = at.and_then(|(target, position)| Some((TopicName::stored(target).ok()?, position.parse().ok()?)));
        let entries = self.outbox.behind(at.as_ref().map(|(target, position)| (target, *position)), MAX_EXAMINED);
        let next = entries.last().filter(|_| entries.len() == MAX_EXAMINED);
        let unreadable = |entry: &OutboxEntry| {
            entry.unfit().is_some().then(|| ForeignRow {
                topic: topic.topic.clone(),
                key: "outbox".into(),
                name: format!("{} {}", entry.target, entry.position.at).into(),
                value: entry.batch.as_bytes().clone(),
                reason: ForeignRow::unread(Some(entry)),
            })
        };
        QueryReply::Examine(Examined {
            foreign: entries.iter().filter_map(unreadable).collect(),
            looked_at: entries.len(),
            next: next.map(|entry| format!("{} {}", entry.target, entry.position.at)),
            ..Examined::default()
        })
    }

    /// The schedules behind this one, in the order of their ids.
    pub(crate) fn schedules(&self, after: Option<&JobId>, limit: usize) -> Vec<JobId> {
        self.jobs.schedules_after(after).take(limit.max(1)).cloned().collect()
    }

    /// A page of an export. O(limit log n).
    pub(crate) fn export(&self, now: Now, request: &PageRequest, broadcasts: bool) -> Result<Exported, StoreError> {
        let fence = self.fence;
        if request.state != State::Running {
            let (mut copies, next) = self.placed(request, broadcasts)?;
            copies.iter_mut().for_each(|copy| self.note_taken(copy));
            return Ok(Exported { jobs: copies.len(), copies, next, fence });
        }
        let read = |(_, id): (_, &JobId)| held_job(id, self.jobs.get(id)?);
        let length = |record: &Record| record.as_bytes().len();
        let size = |HeldJob { record, pending, .. }: &HeldJob| {
            length(record) + pending.replacement.as_ref().map_or(0, |new| length(&new.job.record))
        };
        let (held, next) = page_of(self.runs(request)?, request, read, size, behind_run);
        let jobs = held.len();
        let mut copies: Vec<_> = held.into_iter().flat_map(|job| job.given_back(now.floor())).collect();
        copies.iter_mut().for_each(|copy| self.note_taken(copy));
        Ok(Exported { copies, jobs, next, fence })
    }

    fn note_taken(&self, copy: &mut JobCopy) {
        copy.taken_until = self.taken.get(&copy.id).map(|taken| taken.until);
    }

    /// The number of jobs in each place. O(leaves with due jobs + nodes).
    pub(crate) fn counts(&self, now: Now) -> TopicCounts {
        let delayed = self.jobs.index(State::Delayed);
        TopicCounts {
            clock: now.floor(),
            delayed: delayed.len(),
            ready: delayed.count_due(now.floor()),
            running: self.jobs.in_runs(),
            unacked: self.jobs.index(State::Unacked).len(),
            dead: self.jobs.index(State::Dead).len(),
            done: self.jobs.index(State::Done).len(),
            broadcasts: self.broadcasts.len(),
            head: delayed.head(),
        }
    }

    /// The topic as a whole. O(nodes log nodes + leaves with due jobs).
    pub(crate) fn overview(&self, now: Now, nodes: usize) -> TopicOverview {
        let mut holders: Vec<_> = self.jobs.holders().iter().collect();
        let count = holders.len();
        holders.sort_unstable_by_key(|(node, holder)| (holder.lease, *node));
        let holders = holders.into_iter().take(nodes).map(seen).collect();
        let [watcher, standby] = self.roles.watchers();
        let delayed = self.jobs.index(State::Delayed);
        TopicOverview {
            counts: self.counts(now),
            state: self.topic_state(now),
            holders: count,
            nodes: holders,
            watcher,
            standby,
            recent: self.statistics.recent(now),
            shut: self.shut,
            opens: self.opens.filter(|at| *at > now.micros()).map(|at| Timestamp::from_millis(at.div_ceil(1_000))),
            due: delayed.due_by_priority(now.floor()),
            blocked: delayed.blocked_due(now.floor()),
            hides_leases: false,
        }
    }

    /// A page of the nodes that hold jobs, in order of their names; of those that hold this job, if the request names one.
    pub(crate) fn nodes(&self, request: &NodesRequest) -> HolderPage {
        let after = request.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut holders = self.jobs.holders().range::<NodeId, _>((after, Bound::Unbounded));
        let page: Vec<_> = holders.by_ref().take(request.limit.max(1)).collect();
        let next = page.last().map(|(node, _)| (*node).clone()).filter(|_| holders.next().is_some());
        let holds = |node: &NodeId, id| self.jobs.get(id).and_then(Slot::run).is_some_and(|run| run.node == *node);
        let asked = |node| request.job.as_ref().is_none_or(|id| holds(node, id));
        let nodes = page.into_iter().filter(|(node, _)| asked(node)).map(seen).collect();
        HolderPage { nodes, next }
    }

    /// The number of DELAYED jobs between each two times. O(leaves between the first and the last).
    pub(crate) fn due_counts(&self, times: &[Timestamp]) -> Vec<DueCount> {
        let index = self.jobs.index(State::Delayed);
        let count = |span: &[Timestamp]| DueCount { jobs: index.count_between(span[0], span[1]), is_exact: true };
        times.windows(2).map(count).collect()
    }
}

/// A page of what `read` finds, within the limits of the request, and the cursor behind the last if there are more.
fn page_of<K: Copy, T>(
    mut keys: impl Iterator<Item = K>,
    request: &PageRequest,
    read: impl Fn(K) -> Option<T>,
    size: impl Fn(&T) -> usize,
    cursor: impl Fn(K) -> Cursor,
) -> (Vec<T>, Option<Cursor>) {
    let mut page: Vec<_> = keys.by_ref().take(request.limit.max(1)).filter_map(|key| Some((key, read(key)?))).collect();
    let count = fitting(page.iter().map(|(_, item)| size(item)), request.bytes);
    let more = keys.next().is_some() || count < page.len();
    page.truncate(count);
    let next = page.last().filter(|_| more).map(|(key, _)| cursor(*key));
    (page.into_iter().map(|(_, item)| item).collect(), next)
}

fn size(job: &Stored) -> usize {
    job.record.as_bytes().len()
}

fn behind((at, id): &(Timestamp, JobId)) -> Cursor {
    Cursor { at: *at, id: id.to_string() }
}

fn behind_run((node, id): (&NodeId, &JobId)) -> Cursor {
    Cursor { at: Timestamp::EPOCH, id: format!("{node}/{id}") }
}

/// What a cursor of a place that jobs leave by time names.
fn timed(cursor: &Cursor) -> Result<(Timestamp, JobId), StoreError> {
    Ok((cursor.at, job_id(&cursor.id)?))
}

/// The row that a cursor of RUNNING jobs names.
fn row(cursor: &Cursor) -> Result<(NodeId, JobId), StoreError> {
    let (node, id) = cursor.id.split_once('/').ok_or_else(|| bad_cursor("it names no node"))?;
    Ok((NodeId::new(node), job_id(id)?))
}

fn job_id(text: &str) -> Result<JobId, StoreError> {
    JobId::new(text).map_err(|bad| bad_cursor(&bad.to_string()))
}

fn bad_cursor(why: &str) -> StoreError {
    StoreError::Other { operation: "page", source: format!("the cursor was not given by this store: {why}").into() }
}

impl Slot {
    /// The place of the job, as queries name it.
    pub(super) fn seen_place(&self) -> JobState {
        match &self.place {
            Place::Timed(place, at) => JobState::of(*place, *at),
            Place::Running(run) => JobState::Running { holder: Some((run.node.clone(), run.token.fence)) },
        }
    }
}

fn stored(id: &JobId, slot: &Slot) -> Stored {
    Stored { id: id.clone(), record: slot.record.clone(), place: slot.seen_place(), crashes: 0, progress: None }
}

fn held_job(id: &JobId, slot: &Slot) -> Option<HeldJob> {
    let Place::Running(run) = &slot.place else { return None };
    Some(HeldJob {
        id: id.clone(),
        record: slot.record.clone(),
        crashes: slot.crashes,
        token: Some(run.token),
        pending: run.pending.as_deref().cloned().unwrap_or_default(),
    })
}

fn seen((node, holder): (&NodeId, &Holder)) -> HolderSeen {
    HolderSeen { node: node.clone(), lease: holder.lease, jobs: holder.rows.len() }
}

//! A memory store whose changes go to a sink: what `file:` builds on.
//!
//! To open a store: [`MemoryStore::journaled`], then [`replay`](MemoryStore::replay) for each page of a dump and each step of the
//! journal, then [`raise_fence`](MemoryStore::raise_fence); only then may links and producers use it. To dump it: note the
//! position of the journal, then [`begin_dump`](MemoryStore::begin_dump) and [`dump`](MemoryStore::dump) for each of the
//! [`topics`](MemoryStore::known_topics). A topic that is used for the first time later is not part of the dump: all of it is in
//! the journal behind that position.

use std::sync::Arc;

use super::MemoryStore;
use super::changes::{BadChanges, DumpCursor, PassedOver, Replay, ReplayPart};
use super::durable::Sink;
use super::topic::Topic;
use super::topics::Topics;
use crate::environment::StoreClock;
use crate::job::limits::{OverLimit, SCHEDULE_NAME};
use crate::job::{Fence, JobId, State, TopicKey};
use crate::store::{StoreError, TopicCounts};

/// How much a page of a dump has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// The most rows.
    pub rows: usize,
    /// About the most bytes; a page has one row at least, whatever its size.
    pub bytes: usize,
}

impl MemoryStore {
    /// A new, empty store whose steps hand their changes to `sink`.
    pub fn journaled(clock: Arc<dyn StoreClock>, sink: Arc<dyn Sink>) -> Self {
        Self { name: None, topics: Arc::new(Topics::journaled(clock, sink)) }
    }

    /// Gives up all topics, and with them their memory. The store is of no use then.
    pub(in crate::store) fn forget(&self) {
        self.topics.forget();
    }

    /// From now on adds, imports and growing updates are refused that would take more memory than this.
    pub fn limit_memory(&self, bytes: u64) {
        self.topics.budget.set_limit(bytes);
    }

    /// Counts these bytes of memory, which other jobs take that the store does not have.
    pub(in crate::store) fn count_others(&self, bytes: u64) {
        self.topics.budget.count(bytes);
    }

    /// Puts rows of which only the places are known. They are not handed to the sink.
    pub(in crate::store) fn put_places(
        &self,
        topic: &TopicKey,
        places: Vec<(bool, State, JobId)>,
    ) -> Result<(), StoreError> {
        self.topics.cell(topic).with("import", |topic| topic.put_places(places))
    }

    /// Applies changes of a step, or a page of a dump, as far as they are of jobs of this part. What it does is not handed to the sink.
    ///
    /// # Errors
    /// [`BadChanges`]: the topic is then half-changed, so the store must not be used.
    pub fn replay(
        &self,
        topic: &TopicKey,
        changes: &[u8],
        replay: Replay,
        part: ReplayPart,
    ) -> Result<PassedOver, BadChanges> {
        let applied = self.topics.cell(topic).with("replay", |topic| topic.apply_of(changes, replay, part));
        applied.map_err(|_| BadChanges::stopped())?
    }

    /// No claim of any topic gets this fence or a smaller one. It is the last reservation, which covers every fence that was given out.
    ///
    /// # Errors
    /// [`StoreError::Other`] if a topic is stopped because one of its steps panicked.
    pub fn raise_fence(&self, fence: Fence) -> Result<(), StoreError> {
        self.topics.raise_fence(fence);
        let raise = |topic: &mut Topic| topic.raise_fence(fence);
        self.topics.all().into_iter().try_for_each(|(_, cell)| cell.with("open", raise))
    }

    /// The highest fence that any topic has given out.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn highest_fence(&self) -> Result<Fence, StoreError> {
        let fences = self.topics.all().into_iter().map(|(_, cell)| cell.with("fence", |topic| topic.fence));
        fences.chain([Ok(self.topics.fence())]).try_fold(Fence::default(), |highest, fence| Ok(highest.max(fence?)))
    }

    /// Whether each job of a topic is in exactly one place. O(n log n).
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn is_consistent(&self, topic: &TopicKey) -> Result<bool, StoreError> {
        self.topics
            .cell(topic)
            .with("check", |topic| topic.jobs.len() == topic.jobs.in_places() && topic.jobs.is_consistent())
    }

    /// The jobs and broadcasts of a topic that no node will run, because they are over a limit of the format; at most `most`.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn over_limit(&self, topic: &TopicKey, most: usize) -> Result<Vec<(JobId, OverLimit)>, StoreError> {
        self.topics.cell(topic).query("check", |topic, _| {
            let jobs = topic.jobs.iter().map(|(id, slot)| (id, &slot.record, slot.place.state()));
            let broadcasts = topic.broadcasts.iter().map(|(id, (_, record))| (id, record, State::Delayed));
            let over = jobs.chain(broadcasts).filter_map(|(id, record, state)| {
                let name = id.schedule_name().map_or(Ok(()), |name| SCHEDULE_NAME.check(name.len() as u64));
                Some((id.clone(), record.over_limit(state).or(name.err())?))
            });
            let mut over: Vec<_> = over.take(most).collect();
            over.sort_by(|(a, _), (b, _)| a.cmp(b));
            over
        })
    }

    /// How many jobs of a topic are in each state.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn counts_now(&self, topic: &TopicKey) -> Result<TopicCounts, StoreError> {
        self.topics.cell(topic).query("check", Topic::counts)
    }

    /// Whether a topic has this job.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn has(&self, topic: &TopicKey, id: &JobId) -> Result<bool, StoreError> {
        self.topics.cell(topic).with("has", |topic| topic.jobs.get(id).is_some())
    }

    /// Every topic that has been used, in order.
    pub fn known_topics(&self) -> Vec<TopicKey> {
        self.topics.all().into_iter().map(|(key, _)| key).collect()
    }

    /// A dump of the topic begins: until its last page, steps hand over the rows that they change whole.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn begin_dump(&self, topic: &TopicKey) -> Result<DumpCursor, StoreError> {
        self.topics.cell(topic).with("dump", Topic::begin_dump)
    }

    /// Gives a dump up: its pages are of no use.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn give_up_dump(&self, topic: &TopicKey) -> Result<(), StoreError> {
        self.topics.cell(topic).with("dump", Topic::give_up_dump)
    }

    /// Writes the next page of a dump behind what is in `into`, under the lock of the topic. Returns whether it was the last.
    ///
    /// # Errors
    /// As [`raise_fence`](Self::raise_fence).
    pub fn dump(
        &self,
        topic: &TopicKey,
        cursor: &mut DumpCursor,
        size: PageSize,
        into: &mut Vec<u8>,
    ) -> Result<bool, StoreError> {
        self.topics.cell(topic).with("dump", |topic| topic.dump(cursor, size.rows, size.bytes, into))
    }
}

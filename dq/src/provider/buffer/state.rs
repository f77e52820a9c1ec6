//! What a buffer knows of its entries without reading them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde::Serialize;

use super::Bounds;
use crate::job::{ProducerId, TopicKey};
use crate::provider::{RefusedJob, show_last};
use crate::store::{AddOutcome, BatchAnswer, BatchReply, Due, FollowUpBatch, NewJob, Packed, StoreError};
use crate::time::Timestamp;

/// What waits in the buffer of a provider, which takes adds while the store is away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BufferHealth {
    /// The directory.
    pub directory: String,
    /// Whether the store is away.
    pub is_away: bool,
    /// How many jobs wait.
    pub jobs: usize,
    /// How many bytes they have.
    pub bytes: usize,
    /// When the first of them was added, by the clock of this program.
    pub oldest: Option<Timestamp>,
    /// How many jobs were sent since the start of the provider.
    pub sent: u64,
    /// How many of these the store refused for good, and how many the buffer dropped because they were too old.
    pub refused: u64,
    /// The last of these, at most 16, oldest first.
    pub last_refused: Vec<RefusedJob>,
}

/// A batch of adds for one topic, as the directory keeps it.
#[derive(Debug)]
pub(super) struct Written {
    /// Its place in the directory: `max(last + 1, clock of the program in µs)`.
    pub(super) place: u64,
    /// When it was written, by the clock of the program.
    pub(super) at: Timestamp,
    pub(super) batch: Packed,
    pub(super) jobs: usize,
}

impl Written {
    pub(super) fn size(&self) -> Size {
        Size { jobs: self.jobs, bytes: self.batch.as_bytes().len() }
    }

    /// What the callers hear.
    pub(super) fn answer(&self) -> BatchReply {
        BatchReply::Add(BatchAnswer::Done(vec![AddOutcome::Buffered; self.jobs]))
    }
}

/// How much an entry takes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) jobs: usize,
    pub(super) bytes: usize,
}

/// The entries of a buffer, as numbers.
#[derive(Debug, Default)]
pub(super) struct BufferState {
    /// Since when the store is away, by the node's clock.
    away_since: Option<Duration>,
    /// The store's clock in µs when it told it, and when that was by the node's clock.
    pub(super) clock: Option<(u64, Duration)>,
    /// A topic to ask for the store's clock.
    topic: Option<TopicKey>,
    /// The highest number of each producer that went to the store.
    forwarded: BTreeMap<(TopicKey, ProducerId), Arc<AtomicU64>>,
    /// The entries of each topic, by place.
    waiting: BTreeMap<TopicKey, BTreeMap<u64, Size>>,
    size: Size,
    /// The last place.
    pub(super) last: u64,
    sent: u64,
    refused: u64,
    last_refused: Vec<RefusedJob>,
}

impl BufferState {
    /// No entry has this place or a smaller one.
    pub(super) fn behind(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    /// The highest number of this producer that went to the store. A connection that breaks takes its handle along, and the numbers go on.
    pub(super) fn forwarded_of(&mut self, topic: &TopicKey, producer: &ProducerId) -> Arc<AtomicU64> {
        self.knows(topic);
        Arc::clone(self.forwarded.entry((topic.clone(), producer.clone())).or_default())
    }

    pub(super) fn knows(&mut self, topic: &TopicKey) {
        self.topic.get_or_insert_with(|| topic.clone());
    }

    /// A topic to ask for the store's clock.
    pub(super) fn known(&self) -> Option<TopicKey> {
        self.topic.clone()
    }

    /// For how long the store has been away; `None`: it answers, as far as anybody knows.
    pub(super) fn away_for(&self, now: Duration) -> Option<Duration> {
        self.away_since.map(|since| now.saturating_sub(since))
    }

    /// Whether adds for this topic go into the buffer: the store is away, or others of the topic still wait.
    pub(super) fn takes(&self, topic: &TopicKey) -> bool {
        self.away_since.is_some() || self.waiting.contains_key(topic)
    }

    /// The store is away. Returns whether that is new.
    pub(super) fn goes_away(&mut self, now: Duration) -> bool {
        let is_new = self.away_since.is_none();
        self.away_since.get_or_insert(now);
        is_new
    }

    /// The store answers: adds for topics of which none waits go there again. Returns how long they did not.
    pub(super) fn comes_back(&mut self, now: Duration) -> Option<Duration> {
        self.away_since.take().map(|since| now.saturating_sub(since))
    }

    /// The entry of these jobs, if there is room for it.
    pub(super) fn write(
        &mut self,
        topic: &TopicKey,
        mut jobs: Vec<NewJob>,
        at: Timestamp,
        bounds: Bounds,
    ) -> Result<Written, StoreError> {
        for job in &mut jobs {
            if let Due::Usual(delay) = job.due {
                // The default delay of the topic is with the store.
                job.due = Due::After(delay);
            }
        }
        let count = jobs.len();
        let batch = FollowUpBatch::Add(jobs).packed();
        let (jobs, bytes) =
            (self.size.jobs.saturating_add(count), self.size.bytes.saturating_add(batch.as_bytes().len()));
        let full = jobs > bounds.jobs || bytes > bounds.bytes;
        if full {
            return Err(StoreError::Other { operation: "add", source: is_full(self.size).into() });
        }
        let place = at.as_millis().saturating_mul(1_000).max(self.last.saturating_add(1));
        let written = Written { place, at, batch, jobs: count };
        self.note(topic, place, written.size());
        Ok(written)
    }

    /// There is an entry.
    pub(super) fn note(&mut self, topic: &TopicKey, place: u64, size: Size) {
        self.last = self.last.max(place);
        self.size.jobs = self.size.jobs.saturating_add(size.jobs);
        self.size.bytes = self.size.bytes.saturating_add(size.bytes);
        self.waiting.entry(topic.clone()).or_default().insert(place, size);
    }

    /// These entries are gone.
    pub(super) fn forget(&mut self, topic: &TopicKey, gone: &[u64]) {
        let Some(of_topic) = self.waiting.get_mut(topic) else { return };
        for place in gone {
            if let Some(size) = of_topic.remove(place) {
                self.size.jobs = self.size.jobs.saturating_sub(size.jobs);
                self.size.bytes = self.size.bytes.saturating_sub(size.bytes);
            }
        }
        if of_topic.is_empty() {
            self.waiting.remove(topic);
        }
    }

    /// The topics with entries.
    pub(super) fn topics(&self) -> Vec<TopicKey> {
        self.waiting.keys().cloned().collect()
    }

    pub(super) const fn sent(&mut self, jobs: usize) {
        self.sent = self.sent.saturating_add(jobs as u64);
    }

    /// A job is refused for good.
    pub(super) fn refuse(&mut self, refused: RefusedJob) {
        self.refused += 1;
        show_last(&mut self.last_refused, refused);
    }

    pub(super) fn health(&self, directory: String) -> BufferHealth {
        let oldest = self.waiting.values().filter_map(|of_topic| of_topic.keys().next()).min();
        BufferHealth {
            directory,
            is_away: self.away_since.is_some(),
            jobs: self.size.jobs,
            bytes: self.size.bytes,
            oldest: oldest.map(|place| Timestamp::floor_micros(*place)),
            sent: self.sent,
            refused: self.refused,
            last_refused: self.last_refused.clone(),
        }
    }
}

fn is_full(size: Size) -> String {
    format!(
        "the store is away and the buffer is full: {} jobs with {} bytes wait in it. Raise `buffer_limit` or `buffer_bytes`, or bring the store back",
        size.jobs, size.bytes
    )
}

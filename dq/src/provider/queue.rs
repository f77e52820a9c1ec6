//! The batches of a topic that have not been sent yet.
//!
//! Requests keep their order. A batch is of one kind and never has an id twice: a request that would break that, or that is
//! over the bounds of the last batch, begins the next one. Generated ids cannot repeat, so the queue does not check them.
//!
//! How many bytes a batch may have is what the connection to the store carries in time. A batch that takes longer than `call_timeout`
//! to leave is given up, sent again, and never arrives. So batches begin small, grow while their answers come quickly, and shrink after
//! a time-out. One job is always a batch, whatever its size.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::batch::Batch;
use super::error::Reason;
use super::request::{Deadline, Posted};
use crate::job::JobId;
use crate::store::StoreError;
use crate::store::step::MOST_JOBS;

pub(super) struct BatchQueue {
    batches: VecDeque<Batch>,
    /// The chosen ids of the last batch, while it can grow.
    ids: HashSet<JobId, FixedState>,
    /// Whether the last batch can grow.
    open: bool,
    /// How many batches were started.
    started: u64,
    /// The emptied vector of a batch, for the next one.
    spare: Vec<Posted>,
}

impl BatchQueue {
    /// An empty queue; `seed` is for the hashes of ids, which users choose.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            batches: VecDeque::new(),
            ids: HashSet::with_hasher(FixedState::with_seed(seed)),
            open: false,
            started: 0,
            spare: Vec::new(),
        }
    }

    /// Appends a request. A batch gets no more than `most_bytes`, unless one job alone has more.
    pub(super) fn push(&mut self, posted: Posted, most_bytes: usize) {
        let chosen = posted.request.can_repeat_id().then(|| posted.request.id().clone());
        if let Some(last) =
            self.batches.back_mut().filter(|last| self.open && last.takes(&posted, MOST_JOBS, most_bytes))
            && chosen.as_ref().is_none_or(|id| !self.ids.contains(id))
        {
            self.ids.extend(chosen);
            last.push(posted);
            return;
        }
        self.ids.clear();
        self.ids.extend(chosen);
        self.open = true;
        self.started += 1;
        self.batches.push_back(Batch::new(self.started, posted, std::mem::take(&mut self.spare)));
    }

    /// Puts a batch that needs a new number back where it was in the order of batches.
    pub(super) fn put_back(&mut self, mut batch: Batch) {
        batch.number = 0;
        let place = self.batches.iter().take_while(|other| other.order < batch.order).count();
        if place == self.batches.len() {
            self.open = false;
        }
        self.batches.insert(place, batch);
    }

    /// The next batch that a caller still waits for.
    pub(super) fn next(&mut self) -> Option<Batch> {
        loop {
            let mut batch = self.batches.pop_front()?;
            if self.batches.is_empty() {
                self.open = false;
            }
            if !batch.drop_abandoned() {
                return Some(batch);
            }
        }
    }

    /// Every batch, in order.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Batch> {
        self.batches.into_iter()
    }

    /// How many requests the last batch has: all that wait, unless a batch has closed.
    pub(super) fn growing(&self) -> usize {
        self.batches.back().map_or(0, Batch::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether the first batch cannot grow any more.
    pub(super) fn has_closed(&self, most_bytes: usize) -> bool {
        match self.batches.len() {
            0 => false,
            1 => !self.open || self.batches[0].is_full(MOST_JOBS, most_bytes),
            _ => true,
        }
    }

    /// Answers the callers whose deadline has passed, and removes batches that no caller waits for. `last_error` is what kept
    /// the batches from being sent, as far as the store said.
    pub(super) fn give_up(&mut self, now: Duration, last_error: Option<&Arc<StoreError>>) {
        let reason = |deadline: &Deadline| last_error.cloned().map_or_else(|| deadline.never_sent(), Reason::Store);
        let before = self.batches.back().map(|last| last.order);
        self.batches.retain_mut(|batch| !batch.give_up(now, reason));
        if self.batches.back().map(|last| last.order) != before {
            self.open = false;
        }
    }

    pub(super) fn earliest_deadline(&self) -> Option<Duration> {
        self.batches.iter().filter_map(Batch::earliest_deadline).min()
    }

    /// Keeps the vector of a batch that is over.
    pub(super) fn recycle(&mut self, batch: Batch) {
        self.spare = batch.into_spare();
    }
}

/// The most bytes of a batch, unless one job alone has more.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// The most bytes of the first batches.
const FIRST_BYTES: usize = 1 << 18;
/// The fewest bytes to which the bound shrinks.
const FEWEST_BYTES: usize = 1 << 14;

/// The bound on the bytes of a batch.
#[derive(Debug)]
pub(super) struct Upload {
    bytes: usize,
    /// An answer within this time lets the bound grow.
    quick: Duration,
}

impl Upload {
    pub(super) fn new(call_timeout: Duration) -> Self {
        Self { bytes: FIRST_BYTES, quick: call_timeout / 8 }
    }

    /// The most bytes of the next batch.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// An answer came this long after its batch was sent.
    pub(super) fn answered_after(&mut self, time: Duration) {
        if time <= self.quick {
            self.bytes = (self.bytes * 2).min(MOST_BYTES);
        }
    }

    /// No answer came in time.
    pub(super) fn timed_out(&mut self) {
        self.bytes = (self.bytes / 2).max(FEWEST_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_with_quick_answers_and_shrink_with_time_outs() {
        let mut upload = Upload::new(Duration::from_secs(2));
        assert_eq!(upload.bytes(), FIRST_BYTES);
        upload.answered_after(Duration::from_millis(251));
        assert_eq!(upload.bytes(), FIRST_BYTES, "the link is no faster than this");
        for _ in 0..9 {
            upload.answered_after(Duration::from_millis(250));
        }
        assert_eq!(upload.bytes(), MOST_BYTES);
        for _ in 0..30 {
            upload.timed_out();
        }
        assert_eq!(upload.bytes(), FEWEST_BYTES);
    }
}

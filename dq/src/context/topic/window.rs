//! Windows: how much a topic takes at a time: how many jobs and bytes a request asks for at most, how many jobs it claims ahead, and how
//! many bytes of payloads wait on this node.
//!
//! A request whose answer does not come in time may have asked for more than the link can carry. So each time-out halves what
//! the next one asks for, down to one job, which passes on any link. Answers let it grow again, the more slowly the more often
//! it was too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::store::step::{DEFAULT_BYTES, MAX_JOBS};

/// The most jobs that a step moves or lists. This many acks keep Redis busy for half a millisecond and any other outcomes for
/// two, and nothing else of the server runs meanwhile; a job of a larger batch costs no less.
const MAX_AT_ONCE: usize = 300;
/// Fewer bytes are never asked for. One job always passes, whatever its size.
const FEWEST_BYTES: usize = 1 << 10;
/// After how many answers a window that was halved once grows.
const FEWEST_ANSWERS: u32 = 4;
/// After how many answers a window grows at the latest.
const MAX_ANSWERS: u32 = 64;

/// How many jobs and bytes a request asks for at most.
#[derive(Debug)]
pub(super) struct Window {
    /// The most jobs that it asks for.
    most: usize,
    /// How often all that was halved.
    halved: u32,
    /// Answers since the last change.
    answers: u32,
    grows_after: u32,
}

impl Default for Window {
    fn default() -> Self {
        Self::of(1)
    }
}

impl Window {
    /// A window that grows to this many jobs, or to as many as a step moves at most otherwise.
    pub(super) fn of(most: usize) -> Self {
        Self { most: most.max(MAX_AT_ONCE), halved: 0, answers: 0, grows_after: FEWEST_ANSWERS / 2 }
    }

    pub(super) fn jobs(&self) -> usize {
        (self.most >> self.halved).max(1)
    }

    pub(super) fn bytes(&self) -> usize {
        (DEFAULT_BYTES >> self.halved).max(FEWEST_BYTES)
    }

    /// No answer came in time.
    pub(super) fn timed_out(&mut self) {
        self.halved += u32::from(self.jobs() > 1 || self.bytes() > FEWEST_BYTES);
        self.answers = 0;
        self.grows_after = (self.grows_after * 2).min(MAX_ANSWERS);
    }

    /// The task panicked at one of the jobs of a request.
    pub(super) fn narrow(&mut self) {
        self.timed_out();
        self.halved = self.halved.max(self.most.ilog2());
    }

    /// An answer came.
    pub(super) fn answered(&mut self) {
        if self.halved == 0 {
            return;
        }
        self.answers += 1;
        if self.answers >= self.grows_after {
            self.halved -= 1;
            self.answers = 0;
        }
    }
}

/// As many jobs as ended within a window of this length wait beside those that run.
const ENDED_WITHIN: Duration = Duration::from_millis(50);

/// How many jobs to claim beyond those that can start at once: as many as ended lately, so that a fast topic does not wait for the store
/// between two jobs, and a slow one does not hoard. Without it a drain on Redis took 38 commands for 1,000 jobs instead of 9, and 3.9 µs of
/// this process for each instead of 2.5 (`cargo bench -p dq --bench lifecycle -- --quick --only "Redis, drain"`, on a busy machine).
#[derive(Debug)]
pub(super) struct Prefetch {
    window_start: Duration,
    /// How many ended in this window, and in the one before.
    ended: usize,
    ended_before: usize,
}

impl Prefetch {
    pub(super) const fn new(now: Duration) -> Self {
        Self { window_start: now, ended: 0, ended_before: 0 }
    }

    /// So many jobs have ended.
    pub(super) fn ended(&mut self, jobs: usize, now: Duration) {
        self.advance(now);
        self.ended += jobs;
    }

    /// How many jobs to claim beyond those that can start at once.
    pub(super) fn ahead(&mut self, now: Duration) -> usize {
        self.advance(now);
        self.ended_before.min(MAX_JOBS)
    }

    fn advance(&mut self, now: Duration) {
        let windows = now.saturating_sub(self.window_start).as_millis() / ENDED_WITHIN.as_millis();
        if windows > 0 {
            self.ended_before = if windows == 1 { self.ended } else { 0 };
            self.ended = 0;
            self.window_start = now;
        }
    }
}

/// The most bytes of records that wait for a permit in one topic. One answer may go beyond.
const MAX_OF_TOPIC: usize = 16 << 20;
/// The most bytes of records that wait for a permit on one node. One answer of each topic may go beyond.
const MAX_OF_NODE: usize = 64 << 20;

/// Bytes of records that wait for a permit, or are in batches that run, in all topics of a node. The clones share one number.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingBytes(Arc<AtomicUsize>);

/// The part of one topic.
#[derive(Debug)]
pub(super) struct WaitingShare {
    all: WaitingBytes,
    own: usize,
}

impl WaitingShare {
    pub(super) const fn new(all: WaitingBytes) -> Self {
        Self { all, own: 0 }
    }

    /// This many bytes wait now.
    pub(super) fn set(&mut self, own: usize) {
        self.all.0.fetch_add(own, Relaxed);
        self.all.0.fetch_sub(std::mem::replace(&mut self.own, own), Relaxed);
    }

    /// Whether the topic claims no job beyond those that can start at once.
    pub(super) fn is_full(&self) -> bool {
        self.own >= MAX_OF_TOPIC || self.all.0.load(Relaxed) >= MAX_OF_NODE
    }
}

impl Drop for WaitingShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_timeout_halves_what_is_asked_for_down_to_one_job() {
        let mut window = Window::default();
        window.timed_out();
        assert_eq!((window.jobs(), window.bytes()), (MAX_AT_ONCE / 2, DEFAULT_BYTES / 2));
        (0..20).for_each(|_| window.timed_out());
        assert_eq!((window.jobs(), window.bytes()), (1, FEWEST_BYTES));
    }

    #[test]
    fn answers_let_a_window_grow_the_more_slowly_the_more_often_it_was_too_much() {
        let answers_to_grow = |timeouts: u32| {
            let mut window = Window::default();
            (0..timeouts).for_each(|_| window.timed_out());
            let before = window.bytes();
            (1..).find(|_| {
                window.answered();
                window.bytes() == 2 * before
            })
        };
        assert_eq!([1, 2, 3].map(answers_to_grow), [Some(4), Some(8), Some(16)]);
        let mut window = Window::default();
        window.timed_out();
        (0..100).for_each(|_| window.answered());
        assert_eq!((window.jobs(), window.bytes()), (MAX_AT_ONCE, DEFAULT_BYTES));
    }

    #[test]
    fn the_bytes_that_wait_are_those_of_all_topics() {
        let all = WaitingBytes::default();
        let mut topics: Vec<_> = (0..5).map(|_| WaitingShare::new(all.clone())).collect();
        topics[0].set(MAX_OF_TOPIC);
        assert!(topics[0].is_full() && !topics[1].is_full());
        topics[1..].iter_mut().for_each(|topic| topic.set(MAX_OF_TOPIC - 1));
        assert!(topics[4].is_full(), "the node is full");
        topics.truncate(4);
        assert!(!topics[3].is_full(), "a topic that is gone waits for nothing");
        topics[0].set(0);
        assert!(!topics[0].is_full());
    }

    #[test]
    fn as_many_are_taken_ahead_as_ended_lately() {
        let mut prefetch = Prefetch::new(Duration::ZERO);
        (0..20).for_each(|ms| prefetch.ended(1, ms * MS));
        assert_eq!(prefetch.ahead(40 * MS), 0, "the window is not over");
        assert_eq!(prefetch.ahead(60 * MS), 20);
        (61..64).for_each(|ms| prefetch.ended(1, ms * MS));
        assert_eq!(prefetch.ahead(110 * MS), 3, "those of one window only");
        assert_eq!(prefetch.ahead(400 * MS), 0, "nothing ended since");
    }
}

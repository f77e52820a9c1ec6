//! The queue between the callers of one topic and its coalescer.
//!
//! Callers push requests under a short lock; the coalescer takes all of them at once. The coalescer sets from how many
//! requests on it wants to be woken, so that a request that can only go with the next batch does not wake it. A closed inbox
//! drops new requests, and their callers receive *stopped*.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::request::Posted;
use super::results::Results;
use super::seat::{Bell, Seat};
use crate::job::TopicKey;

/// When to wake the coalescer: at this many requests, at this many bytes, or for a request whose deadline is before this
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WakeAt {
    pub(super) requests: usize,
    pub(super) bytes: usize,
    pub(super) before: Duration,
}

struct Waiting {
    requests: VecDeque<Posted>,
    bytes: usize,
    /// The earliest deadline of a request.
    deadline: Duration,
    wake_at: WakeAt,
    started: bool,
    closed: bool,
}

impl Waiting {
    const fn new() -> Self {
        let wake_at = WakeAt { requests: 1, bytes: 0, before: Duration::ZERO };
        Self { requests: VecDeque::new(), bytes: 0, deadline: Duration::MAX, wake_at, started: false, closed: false }
    }

    fn push(&mut self, posted: Posted) {
        self.bytes += posted.bytes();
        self.deadline = self.deadline.min(posted.deadline.at);
        self.requests.push_back(posted);
    }

    fn is_worth_waking(&self) -> bool {
        let WakeAt { requests, bytes, before } = self.wake_at;
        let wanted = self.requests.len() >= requests || self.bytes >= bytes || self.deadline < before;
        !self.requests.is_empty() && wanted
    }
}

/// What the callers and the coalescer of one topic share.
pub(super) struct Inbox {
    pub(super) key: TopicKey,
    /// Wakes the coalescer.
    pub(super) wake: Notify,
    /// Where the coalescer sits, if it runs on the user's runtime.
    pub(super) seat: OnceLock<(Arc<Bell>, Weak<Seat>)>,
    /// Fires when the inbox is closed and every request has an answer.
    pub(super) ended: CancellationToken,
    /// What callers need to wait for results.
    pub(super) results: Results,
    waiting: Mutex<Waiting>,
}

impl Inbox {
    pub(super) fn new(key: TopicKey) -> Self {
        Self {
            key,
            wake: Notify::new(),
            seat: OnceLock::new(),
            ended: CancellationToken::new(),
            results: Results::default(),
            waiting: Mutex::new(Waiting::new()),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends requests in their order. Returns whether the caller must start the coalescer.
    pub(super) fn post(&self, requests: impl IntoIterator<Item = Posted>) -> bool {
        let mut waiting = self.waiting();
        if waiting.closed {
            return false;
        }
        let was_worth_waking = waiting.is_worth_waking();
        requests.into_iter().for_each(|posted| waiting.push(posted));
        let wake = !was_worth_waking && waiting.is_worth_waking();
        let start = !std::mem::replace(&mut waiting.started, true);
        drop(waiting);
        if wake && !start {
            self.wake_coalescer();
        }
        start
    }

    fn wake_coalescer(&self) {
        let Some((bell, seat)) = self.seat.get() else { return self.wake.notify_one() };
        match seat.upgrade() {
            Some(seat) => seat.wake_from_caller(|| self.wake.notify_one()),
            None => self.wake.notify_one(),
        }
        bell.posted();
    }

    /// Whether the coalescer runs on the user's runtime and has nothing to do: then a request leaves as soon as it is posted.
    pub(super) fn sends_at_once(&self) -> bool {
        self.seat.get().is_some_and(|(bell, _)| !bell.is_busy.load(Ordering::SeqCst))
    }

    /// Whether there is something for the coalescer to do.
    pub(super) fn has_work(&self) -> bool {
        let waiting = self.waiting();
        waiting.closed || !waiting.requests.is_empty()
    }

    /// Moves every request to the end of `into`.
    pub(super) fn take(&self, into: &mut VecDeque<Posted>) {
        let mut waiting = self.waiting();
        waiting.bytes = 0;
        waiting.deadline = Duration::MAX;
        if into.is_empty() {
            std::mem::swap(&mut waiting.requests, into);
        } else {
            into.append(&mut waiting.requests);
        }
    }

    /// Drops every request: its caller receives *stopped*.
    pub(super) fn drop_requests(&self) {
        let dropped = std::mem::take(&mut self.waiting().requests);
        drop(dropped);
    }

    /// Sets when to wake the coalescer. Returns true if there is reason to wake it already.
    pub(super) fn wake_at(&self, at: WakeAt) -> bool {
        let mut waiting = self.waiting();
        waiting.wake_at = at;
        waiting.is_worth_waking()
    }

    pub(super) fn is_closed_and_empty(&self) -> bool {
        let waiting = self.waiting();
        waiting.closed && waiting.requests.is_empty()
    }

    /// Accepts no more requests; the coalescer still sends those that are here.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        if !waiting.started {
            self.ended.cancel();
        }
        drop(waiting);
        self.wake_coalescer();
    }
}

//! The place where the callers of one topic leave their requests for its coalescer.
//!
//! A request is an [`Request`]: what to do, and the [`Reply`] that answers the caller. Callers only push under a short lock;
//! the one coalescer of the lane takes everything at once. It says from how many entries on it wants to be woken, so that
//! nobody wakes it for what can only go with the next batch. Once the lane is closed, entries are dropped, which their
//! callers read as *stopped*.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::error::Reason;
use crate::job::TopicKey;
use crate::store::{AddOutcome, BatchAnswer, Command, CommandOutcome, NewJob, Numbered, Pending, Producer};
use crate::time::millis_ceil;

/// How a request ended without an outcome.
#[derive(Debug, Clone)]
pub(super) enum Failed {
    /// Certainly nothing was done, and nothing will be.
    NotDone(Reason),
    /// It may have been done, or may still be.
    Unknown(Reason),
}

/// The two kinds of numbered steps.
pub(super) trait RequestKind: Send + 'static {
    type Item: Clone + Send + Unpin + 'static;
    type Outcome: Send + 'static;

    fn send(producer: &dyn Producer, batch: Numbered<Self::Item>) -> Pending<BatchAnswer<Self::Outcome>>;
    fn entry(item: Self::Item, reply: Reply<Self::Outcome>) -> Request;
}

pub(super) struct Adds;
pub(super) struct Commands;

impl RequestKind for Adds {
    type Item = NewJob;
    type Outcome = AddOutcome;

    fn send(producer: &dyn Producer, batch: Numbered<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        producer.add(batch)
    }

    fn entry(item: NewJob, reply: Reply<AddOutcome>) -> Request {
        Request::Add(item, reply)
    }
}

impl RequestKind for Commands {
    type Item = Command;
    type Outcome = CommandOutcome;

    fn send(producer: &dyn Producer, batch: Numbered<Command>) -> Pending<BatchAnswer<CommandOutcome>> {
        producer.command(batch)
    }

    fn entry(item: Command, reply: Reply<CommandOutcome>) -> Request {
        Request::SendCommand(item, reply)
    }
}

/// How to answer a caller.
pub(super) struct Reply<O> {
    to: oneshot::Sender<Result<O, Failed>>,
    /// When the caller's time is over, on the node's clock.
    pub(super) deadline: Duration,
    /// One of the provider's requests that may be unanswered; free again when this is dropped.
    _permit: Option<OwnedSemaphorePermit>,
}

pub(super) type AnswerReceiver<O> = oneshot::Receiver<Result<O, Failed>>;

impl<O> Reply<O> {
    pub(super) fn new(deadline: Duration, permit: Option<OwnedSemaphorePermit>) -> (Self, AnswerReceiver<O>) {
        let (to, answer) = oneshot::channel();
        (Self { to, deadline, _permit: permit }, answer)
    }

    pub(super) fn send(self, answer: Result<O, Failed>) {
        // The caller may have gone away; then nobody wants to know.
        let _ = self.to.send(answer);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.to.is_closed()
    }
}

/// A request of a caller.
pub(super) enum Request {
    Add(NewJob, Reply<AddOutcome>),
    SendCommand(Command, Reply<CommandOutcome>),
}

impl Request {
    pub(super) const fn deadline(&self) -> Duration {
        match self {
            Self::Add(_, reply) => reply.deadline,
            Self::SendCommand(_, reply) => reply.deadline,
        }
    }

    /// About what it takes in a request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        const OVERHEAD: usize = 64;
        OVERHEAD
            + match self {
                Self::Add(job, _) => job.id.as_str().len() + job.record.as_bytes().len(),
                Self::SendCommand(command, _) => command.id.as_str().len(),
            }
    }
}

/// From when on the coalescer wants to be woken: this many entries, this many bytes, or an entry whose caller's time is over
/// before this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WakeAt {
    pub(super) entries: usize,
    pub(super) bytes: usize,
    pub(super) before: Duration,
}

struct Waiting {
    entries: Vec<Request>,
    bytes: usize,
    /// The earliest time at which a caller's time is over.
    deadline: Duration,
    wake_at: WakeAt,
    started: bool,
    closed: bool,
}

impl Waiting {
    const fn new() -> Self {
        let wake_at = WakeAt { entries: 1, bytes: 0, before: Duration::ZERO };
        Self { entries: Vec::new(), bytes: 0, deadline: Duration::MAX, wake_at, started: false, closed: false }
    }

    fn push(&mut self, entry: Request) {
        self.bytes += entry.bytes();
        self.deadline = self.deadline.min(entry.deadline());
        self.entries.push(entry);
    }

    fn is_worth_waking(&self) -> bool {
        let WakeAt { entries, bytes, before } = self.wake_at;
        let wanted = self.entries.len() >= entries || self.bytes >= bytes || self.deadline < before;
        !self.entries.is_empty() && wanted
    }
}

/// What callers and the coalescer of one topic share.
pub(super) struct Inbox {
    pub(super) key: TopicKey,
    /// Wakes the coalescer.
    pub(super) wake: Notify,
    /// Fires when the lane is closed and everything in it is answered.
    pub(super) ended: CancellationToken,
    waiting: Mutex<Waiting>,
    default_delay_ms: AtomicU64,
}

const NO_DELAY: u64 = u64::MAX;

impl Inbox {
    pub(super) fn new(key: TopicKey) -> Self {
        Self {
            key,
            wake: Notify::new(),
            ended: CancellationToken::new(),
            waiting: Mutex::new(Waiting::new()),
            default_delay_ms: AtomicU64::new(NO_DELAY),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves entries, in their order. Says whether the coalescer must be started.
    pub(super) fn post(&self, entries: impl IntoIterator<Item = Request>) -> bool {
        let mut waiting = self.waiting();
        if waiting.closed {
            return false;
        }
        let was_worth_waking = waiting.is_worth_waking();
        entries.into_iter().for_each(|entry| waiting.push(entry));
        let wake = !was_worth_waking && waiting.is_worth_waking();
        let start = !std::mem::replace(&mut waiting.started, true);
        drop(waiting);
        if wake && !start {
            self.wake.notify_one();
        }
        start
    }

    /// Takes everything, into an empty vector.
    pub(super) fn take(&self, into: &mut Vec<Request>) {
        let mut waiting = self.waiting();
        waiting.bytes = 0;
        waiting.deadline = Duration::MAX;
        std::mem::swap(&mut waiting.entries, into);
    }

    /// Says when to wake the coalescer; true when that has come already.
    pub(super) fn wake_at(&self, at: WakeAt) -> bool {
        let mut waiting = self.waiting();
        waiting.wake_at = at;
        waiting.is_worth_waking()
    }

    pub(super) fn is_closed_and_empty(&self) -> bool {
        let waiting = self.waiting();
        waiting.closed && waiting.entries.is_empty()
    }

    /// Takes no more entries; those that are there are still carried out.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        if !waiting.started {
            self.ended.cancel();
        }
        drop(waiting);
        self.wake.notify_one();
    }

    pub(super) fn default_delay(&self) -> Option<Duration> {
        match self.default_delay_ms.load(Ordering::Relaxed) {
            NO_DELAY => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }

    pub(super) fn set_default_delay(&self, delay: Duration) {
        self.default_delay_ms.store(millis_ceil(delay), Ordering::Relaxed);
    }
}

//! Signals: hints that something changed. Any may be lost; the fallback scan repairs that.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::moves::Moves;
use super::producer::CommandKind;
use crate::job::{JobId, NodeId};
use crate::time::Timestamp;

/// What a subscriber wants to receive of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interest {
    /// The signals to every node and to this node.
    pub node: Option<NodeId>,
    /// Whether to receive the broadcasts of the topic's channel.
    pub broadcasts: bool,
    /// Whether to receive the moves of the topic's jobs. The store tells them while somebody [listens](super::Store::listen).
    pub moves: bool,
}

/// A hint that something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The topic has an earlier head. `None`: transfer. With a time, which only the watcher gets: the head is due then.
    Due(Option<Timestamp>),
    /// This node has a new lease, which lasts this long from now: look at the leases once it ends.
    Lease(NodeId, Duration),
    /// The topic has an earlier broadcast: publish.
    BroadcastDue,
    /// The topic was paused: give back what has not begun, and transfer to learn why.
    Paused,
    /// A pause has changed or ended, or the topic began or ended to drain: transfer.
    StateChanged,
    /// The outbox of the topic has entries: relay.
    Outbox,
    /// A command arrived for a running job.
    Command(CommandKind, JobId),
    /// A broadcast.
    Broadcast(BroadcastMessage),
    /// What a step did to jobs. Only for a subscriber that wants moves.
    Moves(Moves),
    /// The subscriber was too slow for this many moves, which came after those that it has read.
    MovesMissed(u64),
    /// The subscription is interrupted for this reason; the store tries again.
    Interrupted(String),
    /// The subscription was interrupted: any signal may have been lost.
    Resubscribed,
}

/// A published broadcast.
#[derive(Clone, PartialEq, Eq)]
pub struct BroadcastMessage {
    /// Counts the broadcasts that were published on the channel, from 1. A gap means that some did not arrive.
    pub number: u64,
    /// The id of the broadcast job.
    pub id: JobId,
    /// Its record.
    pub record: Bytes,
}

/// Shows number, id and length, never the payload.
impl fmt::Debug for BroadcastMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, id, record } = self;
        write!(f, "BroadcastMessage({number}, {id}, {} bytes)", record.len())
    }
}

/// How many signals wait for a slow subscriber. Later ones are lost.
pub(crate) const SIGNAL_BUFFER: usize = 1_024;

/// How many messages with moves wait for a slow subscriber: at most 2 MiB as Redis sends them.
const MOVES_BUFFER: usize = 32;

/// A subscription to signals. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Signals {
    signals: mpsc::Receiver<Signal>,
    /// How many moves were lost since the subscriber last heard of it.
    missed: Arc<AtomicU64>,
}

/// What feeds a subscription.
#[derive(Debug, Clone)]
pub struct Feed {
    signals: mpsc::Sender<Signal>,
    missed: Arc<AtomicU64>,
}

impl Feed {
    /// Sends a signal, unless the subscriber is too slow: then the signal is lost, and moves are counted.
    pub fn send(&self, signal: Signal) {
        let moves = match &signal {
            Signal::Moves(moves) => moves.count(),
            _ => 0,
        };
        // Behind a gap the subscriber hears of the gap first.
        if moves > 0 && self.missed.load(Ordering::Acquire) > 0 || self.signals.try_send(signal).is_err() {
            self.missed.fetch_add(moves, Ordering::AcqRel);
        }
    }

    /// Whether the subscription has ended.
    pub fn is_closed(&self) -> bool {
        self.signals.is_closed()
    }
}

impl Signals {
    /// Makes a subscription and what feeds it.
    pub fn channel(interest: &Interest) -> (Feed, Self) {
        let (feed, signals) = mpsc::channel(if interest.moves { MOVES_BUFFER } else { SIGNAL_BUFFER });
        let missed = Arc::<AtomicU64>::default();
        (Feed { signals: feed, missed: Arc::clone(&missed) }, Self { signals, missed })
    }

    /// Waits for the next signal; `None` if the store is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<Signal> {
        match self.try_next() {
            Some(signal) => Some(signal),
            None => self.signals.recv().await,
        }
    }

    /// Returns a signal that has already arrived.
    pub fn try_next(&mut self) -> Option<Signal> {
        self.signals.try_recv().ok().or_else(|| {
            let missed = self.missed.swap(0, Ordering::AcqRel);
            (missed > 0).then_some(Signal::MovesMissed(missed))
        })
    }
}

//! Signals: hints that something changed. Any may be lost; the fallback scan repairs that.

use std::fmt;

use bytes::Bytes;
use tokio::sync::mpsc;

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
}

/// A hint that something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The topic has an earlier head. `None`: transfer. With a time, which only the watcher gets: the head is due then.
    Due(Option<Timestamp>),
    /// The topic has an earlier broadcast: publish.
    BroadcastDue,
    /// The topic was paused: give back what has not begun, and transfer to learn why.
    Paused,
    /// A pause has changed or ended, or the topic began or ended to drain: transfer.
    StateChanged,
    /// A command arrived for a running job.
    Command(CommandKind, JobId),
    /// A broadcast.
    Broadcast(BroadcastMessage),
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

/// A subscription to signals. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// Makes a subscription and the sender that feeds it. The caller drops signals that do not fit.
    pub fn channel() -> (mpsc::Sender<Signal>, Self) {
        let (feed, signals) = mpsc::channel(SIGNAL_BUFFER);
        (feed, Self(signals))
    }

    /// Waits for the next signal; `None` if the store is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<Signal> {
        self.0.recv().await
    }

    /// Returns a signal that has already arrived.
    pub fn try_next(&mut self) -> Option<Signal> {
        self.0.try_recv().ok()
    }
}

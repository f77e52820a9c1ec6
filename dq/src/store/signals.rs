//! Signals: hints that something changed. Any may be lost; the fallback scan repairs that.

use bytes::Bytes;
use tokio::sync::mpsc;

use super::producer::CommandKind;
use crate::job::{JobId, NodeId};

/// What a subscriber wants to hear of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interest {
    /// Signals to every node and to this one.
    pub node: Option<NodeId>,
    /// Broadcasts of the topic's channel.
    pub broadcasts: bool,
}

/// A hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// An earlier head: transfer.
    Due,
    /// An earlier broadcast: cast.
    BroadcastDue,
    /// A mark was left on a running job.
    Command(CommandKind, JobId),
    /// A broadcast.
    Broadcast(BroadcastMessage),
    /// The subscription was broken and is back: anything may have been missed.
    Resubscribed,
}

/// A published broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroadcastMessage {
    /// The id of the broadcast job.
    pub id: JobId,
    /// Its record.
    pub record: Bytes,
}

/// How many signals wait for a slow subscriber before new ones are lost.
pub(crate) const SIGNAL_BUFFER: usize = 1_024;

/// The signals of a subscription; dropping it ends the subscription.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// A subscription and the end that feeds it; the feeder drops what does not fit.
    pub fn channel() -> (mpsc::Sender<Signal>, Self) {
        let (feed, signals) = mpsc::channel(SIGNAL_BUFFER);
        (feed, Self(signals))
    }

    /// The next signal; `None` when the store is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<Signal> {
        self.0.recv().await
    }

    /// A signal that is already there.
    pub fn try_next(&mut self) -> Option<Signal> {
        self.0.try_recv().ok()
    }
}

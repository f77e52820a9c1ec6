//! What the supervisor has told a topic, and how far its stop has come.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

/// What the supervisor has told its topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::context) enum StopOrder {
    /// Go on.
    Work,
    /// Stop; handlers may go on until this time of the node's clock.
    Stop {
        /// The end of the grace.
        grace_until: Duration,
    },
}

/// How a node stops, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::context) enum Phase {
    /// Claiming ends; roles are free for others.
    Claiming,
    /// What has not started goes back at once.
    Waiting,
    /// Handlers go on, until the grace ends.
    Handlers,
    /// What has not finished is cancelled and goes back.
    Cancel,
    /// Outcomes are sent until the store has judged each.
    Outcomes,
    /// The lease ends.
    Lease,
    /// The store is not needed any more.
    Store,
}

const ORDER: [Phase; 7] =
    [Phase::Claiming, Phase::Waiting, Phase::Handlers, Phase::Cancel, Phase::Outcomes, Phase::Lease, Phase::Store];

/// How far the stop of a topic has come.
#[derive(Debug)]
pub(in crate::context) struct Stopping {
    order: watch::Receiver<StopOrder>,
    closed: bool,
    pub(in crate::context) done: usize,
    pub(in crate::context) cancelled_at: Option<Duration>,
    pub(in crate::context) release_until: Option<Duration>,
    pub(in crate::context) released: bool,
}

impl Stopping {
    pub(in crate::context) const fn new(order: watch::Receiver<StopOrder>) -> Self {
        Self { order, closed: false, done: 0, cancelled_at: None, release_until: None, released: false }
    }

    /// Waits for the next order. Cancel safe.
    pub(in crate::context) async fn ordered(&mut self) {
        if self.closed {
            return pending().await;
        }
        self.closed = self.order.changed().await.is_err();
    }

    /// The end of the grace, once a stop was ordered. A supervisor that is gone wants it at once.
    pub(in crate::context) fn grace_until(&self) -> Option<Duration> {
        match *self.order.borrow() {
            StopOrder::Stop { grace_until } => Some(grace_until),
            StopOrder::Work if self.closed => Some(Duration::ZERO),
            StopOrder::Work => None,
        }
    }

    /// Nothing is claimed or started any more.
    pub(in crate::context) fn is_ordered(&self) -> bool {
        self.grace_until().is_some()
    }

    /// The grace is over.
    pub(in crate::context) fn is_cancelling(&self) -> bool {
        self.phase().is_none_or(|phase| phase >= Phase::Cancel)
    }

    pub(in crate::context) fn phase(&self) -> Option<Phase> {
        ORDER.get(self.done).copied()
    }

    /// Every phase is over.
    pub(in crate::context) fn is_over(&self) -> bool {
        self.phase().is_none()
    }

    /// The release was answered.
    pub(in crate::context) const fn released(&mut self) {
        self.released = true;
    }
}

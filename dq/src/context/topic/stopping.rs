//! What the supervisor has told a topic, and how far its stop has come.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

use crate::context::node::shutdown::StopOrder;

/// How a node stops, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
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
pub(super) struct Stopping {
    order: watch::Receiver<StopOrder>,
    closed: bool,
    pub(super) done: usize,
    pub(super) cancelled_at: Option<Duration>,
    pub(super) release_until: Option<Duration>,
    pub(super) released: bool,
}

impl Stopping {
    pub(super) const fn new(order: watch::Receiver<StopOrder>) -> Self {
        Self { order, closed: false, done: 0, cancelled_at: None, release_until: None, released: false }
    }

    /// Waits for the next order. Cancel safe.
    pub(super) async fn ordered(&mut self) {
        if self.closed {
            return pending().await;
        }
        self.closed = self.order.changed().await.is_err();
    }

    /// The end of the grace, once a stop was ordered. A supervisor that is gone wants it at once.
    pub(super) fn grace_until(&self) -> Option<Duration> {
        match *self.order.borrow() {
            StopOrder::Stop { grace_until } => Some(grace_until),
            StopOrder::Work if self.closed => Some(Duration::ZERO),
            StopOrder::Work => None,
        }
    }

    /// Nothing is claimed or started any more.
    pub(super) fn is_ordered(&self) -> bool {
        self.grace_until().is_some()
    }

    /// The grace is over.
    pub(super) fn is_cancelling(&self) -> bool {
        self.phase().is_none_or(|phase| phase >= Phase::Cancel)
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        ORDER.get(self.done).copied()
    }

    /// Every phase is over.
    pub(super) fn is_over(&self) -> bool {
        self.phase().is_none()
    }

    /// The release was answered.
    pub(super) const fn released(&mut self) {
        self.released = true;
    }
}

//! Shutdown: the order to stop. [`Stopping`](super::machine) goes through the phases of a stop.

use std::future::pending;
use std::time::Duration;

use tokio::sync::watch;

/// What the supervisor orders its tasks to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopOrder {
    /// Go on.
    Continue,
    /// Stop. Handlers may go on until this time of the node's clock.
    Stop {
        /// The end of the grace.
        grace_until: Duration,
    },
}

/// What a topic was ordered.
#[derive(Debug)]
pub(super) struct Orders {
    order: watch::Receiver<StopOrder>,
    closed: bool,
}

impl Orders {
    pub(super) const fn new(order: watch::Receiver<StopOrder>) -> Self {
        Self { order, closed: false }
    }

    /// Waits for the next order. Cancel safe.
    pub(super) async fn changed(&mut self) {
        if self.closed {
            return pending().await;
        }
        self.closed = self.order.changed().await.is_err();
    }

    /// The end of the grace, once a stop was ordered. Without a supervisor the grace is over.
    pub(super) fn grace_until(&self) -> Option<Duration> {
        match *self.order.borrow() {
            StopOrder::Stop { grace_until } => Some(grace_until),
            StopOrder::Continue if self.closed => Some(Duration::ZERO),
            StopOrder::Continue => None,
        }
    }
}

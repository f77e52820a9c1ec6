//! Receives the signals of a topic without waiting for time to pass.
//!
//! The signals of one subscription arrive in the order in which they were sent. So a broadcast that is published after a step
//! marks the end of everything that the step has signalled.

use std::sync::atomic::{AtomicU64, Ordering};

use super::producer::job;
use super::topic::{FALLBACK, Topic};
use dq::job::Delivery;
use dq::store::step::{self, DEFAULT_BYTES, MAX_JOBS};
use dq::store::{Interest, NewJob, Signal, Signals};

const MARKER: &str = "~marker-";

/// The subscription of one node.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) signals: Signals,
    /// The number of marker broadcasts so far.
    markers: AtomicU64,
    name: String,
}

impl Subscriber {
    /// All signals since the last call, except [`Signal::BroadcastDue`] and [`Signal::Lease`].
    pub(super) async fn received(&mut self, topic: &Topic) -> Vec<Signal> {
        let is_other = |signal: &Signal| !matches!(signal, Signal::BroadcastDue | Signal::Lease(..));
        self.received_all(topic).await.into_iter().filter(is_other).collect()
    }

    /// All signals since the last call. The marker itself may cause a [`Signal::BroadcastDue`], and the call publishes all
    /// broadcasts that are due.
    pub(super) async fn received_all(&mut self, topic: &Topic) -> Vec<Signal> {
        let marker = format!("{MARKER}{}-{}", self.name, self.markers.fetch_add(1, Ordering::Relaxed));
        topic.add_job(NewJob { deliver: Delivery::Broadcast, ..job(&marker) }).await;
        let request =
            step::Publish { limit: MAX_JOBS, bytes: DEFAULT_BYTES, fallback: FALLBACK, expires_after: FALLBACK };
        let published = topic.link("marker").step(request).await.expect("publish is answered");
        assert!(published.published > 0, "the marker is published");
        let mut received = Vec::new();
        loop {
            match self.signals.next().await.expect("the store keeps the subscription") {
                Signal::Broadcast(message) if message.id.as_str() == marker => return received,
                Signal::Broadcast(message) if message.id.as_str().starts_with(MARKER) => {}
                signal => received.push(signal),
            }
        }
    }
}

impl Topic {
    /// Subscribes this node to all signals and broadcasts of the topic.
    pub(super) async fn subscribe(&self, node: &str) -> Subscriber {
        let interest = Interest { node: Some(self.node(node)), broadcasts: true, moves: false };
        let signals = self.store.signals(&self.key, interest).await.expect("signals is answered");
        Subscriber { signals, markers: AtomicU64::new(0), name: node.into() }
    }
}

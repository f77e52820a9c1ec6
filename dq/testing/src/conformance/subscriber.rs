//! Hearing the signals of a topic without waiting for time to pass.
//!
//! Signals of one subscription arrive in the order they were sent in, so a broadcast that is published after a step marks
//! the end of everything the step could have signalled.

use std::sync::atomic::{AtomicU64, Ordering};

use super::calls::job;
use super::topic::{FALLBACK, Topic};
use dq::job::Deliver;
use dq::store::step::{self, MOST_JOBS};
use dq::store::{Interest, NewJob, Signal, Signals};

const MARKER: &str = "~marker-";

/// The ear of one node.
#[derive(Debug)]
pub(super) struct Subscriber {
    signals: Signals,
    pending: AtomicU64,
    name: String,
}

impl Subscriber {
    /// Everything that was signalled since the last call, but for what concerns waiting broadcasts.
    pub(super) async fn last_seen(&mut self, topic: &Topic) -> Vec<Signal> {
        self.received_all(topic).await.into_iter().filter(|signal| *signal != Signal::BroadcastDue).collect()
    }

    /// Everything that was signalled since the last call. The marker itself may cause a [`Signal::BroadcastDue`], and what is
    /// due among the broadcasts is published.
    pub(super) async fn received_all(&mut self, topic: &Topic) -> Vec<Signal> {
        let marker = format!("{MARKER}{}-{}", self.name, self.pending.fetch_add(1, Ordering::Relaxed));
        topic.add_job(NewJob { deliver: Deliver::Broadcast, ..job(&marker) }).await;
        let request = step::Publish { limit: MOST_JOBS, fallback: FALLBACK, expires_after: FALLBACK };
        let published = topic.link("marker").step(request).await.expect("cast is answered");
        assert!(published.published > 0, "the marker is due");
        let mut last_seen = Vec::new();
        loop {
            match self.signals.next().await.expect("the store is there") {
                Signal::Broadcast(publish) if publish.id.as_str() == marker => return last_seen,
                Signal::Broadcast(publish) if publish.id.as_str().starts_with(MARKER) => {}
                signal => last_seen.push(signal),
            }
        }
    }
}

impl Topic {
    /// Listens as this node from now on.
    pub(super) async fn listen(&self, node: &str) -> Subscriber {
        let interest = Interest { node: Some(self.node(node)), broadcasts: true };
        let signals = self.store.signals(&self.key, interest).await.expect("signals is answered");
        Subscriber { signals, pending: AtomicU64::new(0), name: node.into() }
    }
}

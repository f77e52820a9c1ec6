//! The counters and the condition of one broadcast channel on this node.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::context::condition::{Condition, LiveCondition, TaskStats};
use crate::store::{Outage, StoreError};

/// The state of one broadcast channel on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChannelHealth {
    /// The broadcast channel.
    pub channel: String,
    /// Its listeners.
    pub listeners: String,
    /// What the channel is doing.
    pub condition: Condition,
    /// Broadcasts that this node published since its start. One node publishes each.
    pub published: u64,
    /// Broadcasts that this node received since its start.
    pub received: u64,
    /// How often a listener failed: errors, panics, timeouts, payloads that do not decode.
    pub failed: u64,
    /// Broadcasts that were lost on their way: each one that did not reach this node while it was subscribed, because its
    /// connection broke or it was too far behind, and each one that a listener did not get because it was 1,024 broadcasts
    /// behind.
    pub missed: u64,
    /// Broadcasts that this node dropped because no node had published them before they expired.
    pub expired: u64,
    /// How often the task of the channel was restarted after a panic of dq itself.
    pub restarts: u64,
}

/// The live counters of one channel.
#[derive(Debug)]
pub(super) struct ChannelStats {
    channel: String,
    listeners: String,
    condition: LiveCondition,
    published: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) missed: AtomicU64,
    expired: AtomicU64,
    restarts: AtomicU64,
}

impl ChannelStats {
    pub(super) fn new(channel: String, listeners: String, outage: &Outage) -> Self {
        let [published, received, failed, missed, expired, restarts] = Default::default();
        let condition = LiveCondition::new(outage);
        Self { channel, listeners, condition, published, received, failed, missed, expired, restarts }
    }

    pub(super) fn read(&self) -> ChannelHealth {
        ChannelHealth {
            channel: self.channel.clone(),
            listeners: self.listeners.clone(),
            condition: self.condition.read(),
            published: self.published.load(Relaxed),
            received: self.received.load(Relaxed),
            failed: self.failed.load(Relaxed),
            missed: self.missed.load(Relaxed),
            expired: self.expired.load(Relaxed),
            restarts: self.restarts.load(Relaxed),
        }
    }

    /// The store has answered a `publish`.
    pub(super) fn published(&self, published: usize, expired: usize) {
        self.condition.contact(&self.channel);
        self.published.fetch_add(published as u64, Relaxed);
        self.expired.fetch_add(expired as u64, Relaxed);
    }

    pub(super) fn stopping(&self) {
        self.condition.set(Condition::Stopping);
    }
}

impl TaskStats for ChannelStats {
    fn store_error(&self, error: &StoreError) {
        self.condition.store_error(&self.channel, error);
    }

    fn restarted(&self, panic: &str) {
        self.restarts.fetch_add(1, Relaxed);
        self.condition.set(Condition::Recovering(format!("dq panicked: {panic}")));
    }
}

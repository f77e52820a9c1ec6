//! The counters and the condition of one broadcast channel on this node.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::context::condition::{Condition, LiveCondition, TaskStats};
use crate::store::Outage;

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

/// The live state of one channel.
#[derive(Debug)]
pub(super) struct ChannelStats {
    pub(super) condition: LiveCondition,
    /// All but its condition. Locked for a copy at most.
    counted: Mutex<ChannelHealth>,
}

impl ChannelStats {
    pub(super) fn new(channel: String, listeners: String, outage: &Outage) -> Self {
        let condition = LiveCondition::new(channel.clone(), outage);
        let [published, received, failed, missed, expired, restarts] = [0; 6];
        let counted = ChannelHealth {
            channel,
            listeners,
            condition: condition.read(),
            published,
            received,
            failed,
            missed,
            expired,
            restarts,
        };
        Self { condition, counted: Mutex::new(counted) }
    }

    pub(super) fn read(&self) -> ChannelHealth {
        ChannelHealth { condition: self.condition.read(), ..self.count().clone() }
    }

    /// The counters, to be changed.
    pub(super) fn count(&self) -> MutexGuard<'_, ChannelHealth> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner) // its numbers are valid at any time
    }
}

impl TaskStats for ChannelStats {
    fn condition(&self) -> &LiveCondition {
        &self.condition
    }

    fn count_restart(&self) {
        self.count().restarts += 1;
    }
}

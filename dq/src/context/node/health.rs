//! Health: the state of a node, for readiness probes and people.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Serialize;
use tokio::sync::Notify;

use crate::context::condition::{Condition, LiveCondition, TaskStats};
use crate::context::topic::stats::{TopicHealth, TopicStats};
use crate::provider::{Buffer, BufferHealth};
use crate::store::{MemoryUse, Outage, Store};

/// The state of a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The app.
    pub app: String,
    /// The node: a random id that is new at every start.
    pub node: String,
    /// The store, without secrets.
    pub store: String,
    /// What the jobs take in memory, and how much they may, of a store that keeps them in the memory of this process.
    pub memory: Option<MemoryUse>,
    /// The settings of the node, as `lease = 15s, heartbeat_interval = 5s, ..`.
    pub settings: String,
    /// Whether every topic and broadcast channel is in touch with the store and none is stopping. Suitable for a readiness probe.
    pub ready: bool,
    /// Whether a topic works, but not as it should: it misses its `lateness_objective`, or its runtime does not begin handlers. Suitable
    /// for an alert, and not for a readiness probe: a node that is late is needed.
    pub degraded: bool,
    /// The topics that the node listens to, in order of their names.
    pub topics: Vec<TopicHealth>,
    /// The broadcast channels that the node listens to, in order of their names.
    pub channels: Vec<ChannelHealth>,
    /// How often a task of the node's provider was restarted after a panic of dq itself
    /// ([`Provider::restarts`](crate::Provider::restarts)).
    pub provider_restarts: u64,
    /// What waits in the [buffer](crate::context::ContextFactory::buffer) of the node's provider; `None`: it has none.
    pub buffer: Option<BufferHealth>,
}

/// Reads the health of a node without its [`Context`](crate::context::Context), for example for a readiness probe beside
/// `run_until_signal`. Cheap to clone. It does not keep the node alive.
#[derive(Debug, Clone)]
pub struct HealthProbe {
    pub(super) registry: Arc<HealthRegistry>,
    pub(super) provider_restarts: Arc<AtomicU64>,
    /// It ends with the provider, whatever still reads the health.
    pub(super) buffer: Option<Weak<Buffer>>,
}

impl HealthProbe {
    /// The state of the node, or its last state after its end. Costs one copy per topic and no request to the store.
    pub fn health(&self) -> Health {
        let provider_restarts = self.provider_restarts.load(Relaxed);
        let buffer = self.buffer.as_ref().and_then(Weak::upgrade).map(|buffer| buffer.health());
        Health { provider_restarts, buffer, ..self.registry.health() }
    }

    /// Waits until the node is [`ready`](Health::ready). Waits forever while the store cannot be reached, and once the node
    /// stops. Cancel safe.
    pub async fn ready(&self) {
        self.registry.ready().await;
    }
}

/// The stats of every topic and channel of a node.
#[derive(Debug)]
pub(super) struct HealthRegistry {
    /// What never changes.
    pub(super) fixed: Health,
    /// It ends with the node, whatever still reads the health.
    pub(super) uses: Weak<dyn Store>,
    pub(super) topics: Vec<Arc<TopicStats>>,
    pub(super) channels: Vec<Arc<ChannelStats>>,
    /// Notified when a condition changes.
    pub(super) changed: Arc<Notify>,
}

impl HealthRegistry {
    pub(super) fn health(&self) -> Health {
        let mut topics: Vec<_> = self.topics.iter().map(|stats| stats.read()).collect();
        topics.sort_by(|a, b| a.topic.cmp(&b.topic));
        let channels: Vec<_> = self.channels.iter().map(|stats| stats.read()).collect();
        let conditions = topics.iter().map(|topic| &topic.condition);
        let mut conditions = conditions.chain(channels.iter().map(|channel| &channel.condition));
        Health {
            memory: self.uses.upgrade().and_then(|store| store.memory_use()),
            ready: conditions.all(|condition| *condition == Condition::Working),
            degraded: topics.iter().any(|topic| topic.late.is_some() || topic.starved.is_some()),
            topics,
            channels,
            ..self.fixed.clone()
        }
    }

    /// Waits until every topic and channel is in touch with the store. Cancel safe.
    pub(super) async fn ready(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // registered before the check, so that no change is missed
            if self.health().ready {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn stopping(&self) {
        self.topics.iter().for_each(|stats| stats.stopping());
        self.channels.iter().for_each(|stats| stats.condition.set(Condition::Stopping));
    }
}

/// The state of one broadcast channel on this node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
        let counted = ChannelHealth { channel, listeners, ..ChannelHealth::default() };
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

//! Health: the state of a node, for readiness probes and people.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use serde::Serialize;
use tokio::sync::Notify;

use super::channel_stats::{ChannelHealth, ChannelStats};
use crate::context::condition::Condition;
use crate::context::topic::stats::{TopicHealth, TopicStats};
use crate::provider::{Buffer, BufferHealth};
use crate::store::{MemoryUse, Store};

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
    /// The settings of the node, as `lease = 15s, renewal = 5s, ..`.
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
    /// The state of the node, or its last state after its end. Costs a few atomic loads per topic and no request to the store.
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

//! Health: the state of a node, fit for a readiness probe.

use std::pin::pin;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::Notify;

use super::channel_stats::{ChannelHealth, ChannelStats};
use crate::context::condition::Condition;
use crate::context::topic::stats::{TopicHealth, TopicStats};

/// How a node is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// The app.
    pub app: String,
    /// The node: a random identity of this start.
    pub node: String,
    /// The store, without secrets.
    pub store: String,
    /// The settings of the node, as `lease = 15s, renewal = 5s, ..`.
    pub settings: String,
    /// Every topic and broadcast channel is in touch with the store and none is stopping: fit for a readiness probe.
    pub ready: bool,
    /// Each topic that is listened to, in order of the names.
    pub topics: Vec<TopicHealth>,
    /// Each broadcast channel that is listened to, in order of the names.
    pub channels: Vec<ChannelHealth>,
}

/// How a node is, for those who do not hold its [`Context`](crate::context::Context): a readiness probe beside
/// `run_until_signal`. Cheap to clone; it does not keep the node alive.
#[derive(Debug, Clone)]
pub struct HealthProbe(pub(super) Arc<HealthRegistry>);

impl HealthProbe {
    /// How the node is, or was when it ended. Asks nobody: costs some loads.
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// Waits until the node is [`ready`](Health::ready); for ever while the store cannot be reached, and when the node has
    /// stopped. Cancel safe.
    pub async fn ready(&self) {
        self.0.ready().await;
    }
}

/// Where everything on a node writes down how it is.
#[derive(Debug)]
pub(super) struct HealthRegistry {
    pub(super) app: String,
    pub(super) node: String,
    pub(super) store: String,
    pub(super) settings: String,
    pub(super) topics: Vec<Arc<TopicStats>>,
    pub(super) channels: Vec<Arc<ChannelStats>>,
    /// Told when a condition becomes another.
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
            app: self.app.clone(),
            node: self.node.clone(),
            store: self.store.clone(),
            settings: self.settings.clone(),
            ready: conditions.all(|condition| *condition == Condition::Working),
            topics,
            channels,
        }
    }

    /// Waits until everything is in touch with the store. Cancel safe.
    pub(super) async fn ready(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // registered before the look, so that no change is missed
            if self.health().ready {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn stopping(&self) {
        self.topics.iter().for_each(|stats| stats.stopping());
        self.channels.iter().for_each(|stats| stats.stopping());
    }
}

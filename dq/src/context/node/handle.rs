//! The handle of a running node.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Plan;
use super::health::{Health, HealthProbe};
use super::signals::Counted;
use super::{Running, start};
use crate::config::Listing;
use crate::job::TopicName;
use crate::provider::Provider;

/// A running node, from [`ContextFactory::start`](crate::context::ContextFactory::start).
///
/// Dropping it without a [`shutdown`](Self::shutdown) stops the node in the background, without a grace: handlers are
/// cancelled, and their jobs go back if the program lives long enough.
#[derive(Debug)]
#[must_use = "dropping it stops the node: keep it, and end with `run_until_signal` or `shutdown`"]
pub struct Context {
    pub(super) running: Running,
    pub(super) provider: Provider,
    settings: Listing,
    topics: BTreeMap<TopicName, Listing>,
    /// The grace of the settings.
    pub(super) grace: Duration,
    pub(super) signals: Counted,
}

impl Context {
    /// The provider of this node, which adds jobs and sends commands. A listener with a `Provider` field has the same one.
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The effective settings of the node, and where each came from.
    pub const fn settings(&self) -> &Listing {
        &self.settings
    }

    /// The effective settings of a topic, and where each came from. `None` if this node does not listen to the topic.
    pub fn topic_settings(&self, topic: &str) -> Option<&Listing> {
        self.topics.get(topic)
    }

    /// The topics that this node listens to, in order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &TopicName> {
        self.topics.keys()
    }

    /// Starts the node of this plan.
    pub(in crate::context) fn launch(plan: &Plan, provider: Provider) -> Self {
        log(plan);
        let (settings, grace) = (plan.listing.clone(), plan.settings.grace);
        let topics = plan.topics.iter().map(|topic| (topic.key.topic.clone(), topic.listing.clone())).collect();
        Self { running: start(plan), provider, settings, topics, grace, signals: Counted::default() }
    }

    /// The state of the node. Costs a few atomic loads per topic and no request to the store.
    pub fn health(&self) -> Health {
        self.probe().health()
    }

    /// Waits until every topic and broadcast channel is in touch with the store ([`Health::ready`]). From then on this node
    /// receives every broadcast. Waits forever while the store cannot be reached. Cancel safe.
    pub async fn ready(&self) {
        self.running.ready().await;
    }

    /// A handle that reads the health of this node, for example for a readiness probe beside
    /// [`run_until_signal`](Self::run_until_signal), which consumes the node.
    pub fn probe(&self) -> HealthProbe {
        self.running.probe(self.provider.restart_count())
    }

    /// Ends the node at once, as a power cut would: no job goes back. For tests of what other nodes do then.
    #[cfg(feature = "testing")]
    pub fn kill(self) {
        self.running.kill();
    }
}

/// Logs what runs, the effective settings, and where each came from.
fn log(plan: &Plan) {
    let Plan { app, node, store, listing, .. } = plan;
    tracing::info!(%app, %node, store = store.url(), settings = %listing, "starting");
    for topic in &plan.topics {
        let (name, declared_at) = (topic.name, topic.declared_at);
        tracing::info!(topic = %topic.key.topic, listener = name, declared_at, settings = %topic.listing, "listening");
    }
    for broadcast in &plan.broadcasts {
        let channels: Vec<_> = broadcast.channels.iter().map(|key| key.topic.as_str()).collect();
        tracing::info!(channels = channels.join(", "), listener = broadcast.name, "listening to broadcasts");
    }
    for (topic, error) in &plan.refused {
        tracing::error!(%topic, error = %error, "this topic is stopped until an operator fixes the cause; the others run");
    }
}

//! The handle of a running node.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Plan;
use super::health::{Health, HealthProbe};
use super::signals::Counted;
use super::{Running, start};
use crate::config::{EffectiveSettings, Source, show_duration};
use crate::context::takeover;
use crate::job::TopicName;
use crate::provider::Provider;
use crate::store::{TopicDelay, TopicLimit};

/// A running node, from [`ContextFactory::start`](crate::context::ContextFactory::start).
///
/// Dropping it without a [`shutdown`](Self::shutdown) stops the node in the background, without a grace: handlers are
/// cancelled, and their jobs go back if the program lives long enough. The log says so at WARN.
#[derive(Debug)]
#[must_use = "dropping it stops the node: keep it, and end with `run_until_signal` or `shutdown`"]
pub struct Context {
    pub(super) running: Running,
    pub(super) provider: Provider,
    settings: EffectiveSettings,
    topics: BTreeMap<TopicName, EffectiveSettings>,
    /// The grace of the settings.
    pub(super) grace: Duration,
    pub(super) signals: Counted,
    /// Its drop is no mistake: it ends a test, or was killed.
    pub(super) is_quiet: bool,
}

impl Context {
    /// The provider of this node, which adds jobs and sends commands. A listener with a `Provider` field has the same one.
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The effective settings of the node, and where each came from.
    pub const fn settings(&self) -> &EffectiveSettings {
        &self.settings
    }

    /// The effective settings of a topic, and where each came from. `None` if this node does not listen to the topic.
    ///
    /// If the topic has a [default delay](Provider::set_default_delay), it is the last one, `delay`, with who set it and when, as far as
    /// this node knows: it learns of a change with its next request to the store, within `poll_interval`.
    pub fn topic_settings(&self, topic: &str) -> Option<EffectiveSettings> {
        let mut listing = self.topics.get(topic)?.clone();
        let Some(state) = self.health().topics.into_iter().find(|state| state.topic == topic) else {
            return Some(listing);
        };
        for TopicLimit { limit, by, since, .. } in state.limits {
            listing = listing.with_stored(limit.kind().name(), limit.to_string(), by, since);
        }
        if let Some(TopicDelay { delay, by, since }) = state.default_delay {
            listing = listing.with_stored("delay", show_duration(delay), by, since);
        }
        Some(listing)
    }

    /// The topics that this node listens to, in order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &TopicName> {
        self.topics.keys()
    }

    /// Starts the node of this plan.
    pub(crate) fn launch(plan: &Plan, provider: Provider) -> Self {
        log(plan);
        let (settings, grace) = (plan.listing.clone(), plan.settings.shutdown_grace);
        let topics = plan.topics.iter().map(|topic| (topic.key.topic.clone(), topic.listing.clone())).collect();
        let running = start(plan);
        provider.share_outage(running.outage.clone());
        Self { running, provider, settings, topics, grace, signals: Counted::default(), is_quiet: false }
    }

    /// The state of the node. Costs one copy per topic and no request to the store.
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
        HealthProbe {
            registry: self.running.registry.clone(),
            provider_restarts: self.provider.restart_count(),
            buffer: self.provider.buffer_handle(),
        }
    }

    /// Ends the node at once, as a power cut would: no job goes back. For tests of what other nodes do then.
    #[cfg(feature = "testing")]
    pub fn kill(mut self) {
        self.is_quiet = true;
        self.running.kill();
    }

    /// Says whether dropping it is no mistake.
    #[cfg(feature = "testing")]
    pub(crate) const fn set_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
    }
}

/// Logs what runs, and the settings with where each came from: those that somebody chose at INFO, all at DEBUG.
fn log(plan: &Plan) {
    let Plan { app, node, store, listing, settings, .. } = plan;
    let takeover = humantime::format_duration(takeover(settings));
    tracing::info!(%app, %node, store = store.url(), settings = %Chosen(listing), %takeover, "starting");
    tracing::debug!(settings = %listing, "all settings of the node");
    for topic in &plan.topics {
        let (name, declared_at) = (topic.name, topic.declared_at);
        tracing::info!(topic = %topic.key.topic, listener = name, declared_at, settings = %Chosen(&topic.listing), "listening");
        tracing::debug!(topic = %topic.key.topic, settings = %topic.listing, "all settings of the topic");
    }
    for broadcast in &plan.broadcasts {
        let channels: Vec<_> = broadcast.channels.iter().map(|key| key.topic.as_str()).collect();
        tracing::info!(channels = channels.join(", "), listener = broadcast.name, "listening to broadcasts");
    }
}

impl Plan {
    /// Logs what a provider without a node uses.
    pub(crate) fn log_provider(&self) {
        let Self { app, store, listing, .. } = self;
        tracing::info!(%app, store = store.url(), settings = %Chosen(listing), "providing");
        tracing::debug!(settings = %listing, "all settings of the provider");
    }
}

/// The settings that somebody chose, each with its source.
struct Chosen<'a>(&'a EffectiveSettings);

impl fmt::Display for Chosen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chosen = self.0.all().iter().filter(|listed| listed.source != Source::Default).peekable();
        if chosen.peek().is_none() {
            return f.write_str("all by default");
        }
        for (i, listed) in chosen.enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} = {} ({})", listed.key, listed.value, listed.source)?;
        }
        Ok(())
    }
}

//! The handle of a running node.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::problems::{Problem, StartError};
use super::supervisor::{self, Running};
use crate::config::Listing;
use crate::job::{TopicKey, TopicName};
use crate::provider::Provider;

/// A running node, from [`ContextFactory::start`](super::ContextFactory::start).
#[derive(Debug)]
pub struct Context {
    running: Running,
    provider: Provider,
    settings: Listing,
    topics: BTreeMap<TopicName, Listing>,
}

impl Context {
    /// Adds jobs and looks after them. Listeners have the same one, where they ask for a `Provider`.
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The settings of the node, each with who said so.
    pub const fn settings(&self) -> &Listing {
        &self.settings
    }

    /// The settings of a topic that this node listens to, each with who said so.
    pub fn topic_settings(&self, topic: &str) -> Option<&Listing> {
        self.topics.get(topic)
    }

    /// The topics that this node listens to, in order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &TopicName> {
        self.topics.keys()
    }

    /// Hands the plan to the supervisor.
    pub(super) async fn launch(plan: Plan, provider: Provider) -> Result<Self, StartError> {
        log(&plan);
        let url = plan.store.url();
        let settings = plan.listing.clone();
        let topics = plan.topics.iter().map(|topic| (topic.key.topic.clone(), topic.listing.clone())).collect();
        let refused = |(key, error): (TopicKey, _)| {
            let (url, topic) = (url.clone(), key.topic.to_string());
            Problem::StoreTopic { url, topic, error }
        };
        match supervisor::start(plan).await {
            Ok(running) => Ok(Self { running, provider, settings, topics }),
            Err(refusals) => Err(StartError::new(refusals.into_iter().map(refused).collect(), Vec::new())),
        }
    }
}

/// What runs, with which settings and by whose word.
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
}

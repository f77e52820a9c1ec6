//! The handle of a running node.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use super::health::{Health, HealthProbe};
use super::plan::Plan;
use super::shutdown::TerminationSignals;
use super::supervisor::{self, Running};
use crate::config::Listing;
use crate::context::error::Error;
use crate::context::topic::stats::TopicHealth;
use crate::job::TopicName;
use crate::provider::Provider;

/// A running node, from [`ContextFactory::start`](crate::context::ContextFactory::start).
///
/// Dropped without a [`shutdown`](Self::shutdown) it stops without a grace, in the background: handlers are cancelled and
/// their jobs go back, as far as the program lives on for it.
#[derive(Debug)]
#[must_use = "dropping it stops the node: keep it, and end with `run_until_signal` or `shutdown`"]
pub struct Context {
    running: Running,
    provider: Provider,
    settings: Listing,
    topics: BTreeMap<TopicName, Listing>,
    grace: Duration,
}

/// What a node left behind when it stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Jobs that could not be given back in time (the store did not answer), or were not to be: other nodes take them.
    pub left: usize,
    /// Handlers that were cancelled and have not returned: they block their thread.
    pub still_running: usize,
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
    pub(in crate::context) fn launch(plan: &Plan, provider: Provider) -> Self {
        log(plan);
        let (settings, grace) = (plan.listing.clone(), plan.settings.grace);
        let topics = plan.topics.iter().map(|topic| (topic.key.topic.clone(), topic.listing.clone())).collect();
        Self { running: supervisor::start(plan), provider, settings, topics, grace }
    }
}

impl Context {
    /// How the node is. Asks nobody: costs some loads.
    pub fn health(&self) -> Health {
        self.running.health()
    }

    /// Waits until every topic and broadcast channel is in touch with the store ([`Health::ready`]): from then on this
    /// node hears every broadcast. Waits for ever while the store cannot be reached. Cancel safe.
    pub async fn ready(&self) {
        self.running.ready().await;
    }

    /// The health for those who do not hold the node: a readiness probe beside [`run_until_signal`](Self::run_until_signal).
    pub fn probe(&self) -> HealthProbe {
        self.running.probe()
    }

    /// Stops the node, in the order of `docs/internals/architecture.md`: claiming ends, what has not started goes back at once,
    /// handlers go on for at most `grace`, what has not finished is cancelled and goes back with its attempt unspent, the
    /// last outcomes are sent, the lease ends. Takes at most about `grace` and 15 s.
    ///
    /// Cancel safe: dropped, the stop goes on without the rest of the grace.
    pub async fn shutdown(self, grace: Duration) -> Stopped {
        self.running.order_stop(grace);
        self.stopped().await
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), then stops as [`shutdown`](Self::shutdown) with the `grace` of the settings.
    /// A second signal ends the grace at once.
    ///
    /// # Errors
    /// When the operating system gives no signals; the node is stopped then.
    pub async fn run_until_signal(self) -> Result<(), Error> {
        self.run_until(std::future::pending::<()>()).await.map(|_| ())
    }

    /// As [`run_until_signal`](Self::run_until_signal), and also ends when `work` is done: its output, or `None` when a
    /// signal came first and `work` was dropped. For a program that ends by itself, or that has more to run than jobs.
    ///
    /// # Errors
    /// When the operating system gives no signals; the node is stopped then, and `work` was dropped.
    pub async fn run_until<T>(self, work: impl Future<Output = T>) -> Result<Option<T>, Error> {
        let mut signals = match TerminationSignals::listen() {
            Ok(signals) => signals,
            Err(error) => {
                let grace = self.grace;
                self.shutdown(grace).await;
                return Err(error.into());
            }
        };
        let done = tokio::select! {
            biased;
            name = signals.next() => {
                tracing::info!(signal = name, grace = %humantime::format_duration(self.grace), "stopping");
                None
            }
            done = work => Some(done),
        };
        self.running.order_stop(self.grace);
        tokio::select! {
            biased;
            () = self.running.stopped() => {}
            name = signals.next() => {
                tracing::info!(signal = name, "stopping at once");
                self.running.order_stop(Duration::ZERO);
            }
        }
        self.stopped().await;
        Ok(done)
    }

    /// Waits for the end of the stop, then flushes what callers have added.
    async fn stopped(&self) -> Stopped {
        self.running.stopped().await;
        self.provider.close().await;
        let topics = self.running.health().topics;
        let sum = |of: fn(&TopicHealth) -> usize| topics.iter().map(of).sum();
        Stopped { left: sum(|topic| topic.held), still_running: sum(|topic| topic.running) }
    }

    /// Ends the node where it is, as a power cut would: nothing is given back. For tests of what other nodes do then.
    #[cfg(feature = "testing")]
    pub fn kill(self) {
        self.running.kill();
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.running.order_stop(Duration::ZERO);
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
    for (topic, error) in &plan.refused {
        tracing::error!(%topic, error = %error, "this topic stands still until that is mended; the others run");
    }
}

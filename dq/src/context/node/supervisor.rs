//! The supervisor: it starts the tasks of a node, restarts a topic after a panic of dq itself, and tells all tasks to stop.
//!
//! Only two other places start tasks of a node: `topic/listener.rs` starts handlers, `broadcast.rs` its listeners.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

use super::arrivals::Arrivals;
use super::broadcast::Channel;
use super::channel_stats::ChannelStats;
use super::health::{Health, HealthProbe, HealthRegistry};
use super::refused::opened;
use super::{Plan, TopicPlan};
use crate::broadcast::ErasedBroadcast;
use crate::context::panic_message;
use crate::context::subscription::Subscription;
use crate::context::topic::shutdown::StopOrder;
use crate::context::topic::stats::TopicStats;
use crate::context::topic::{Parts, Topic};
use crate::environment::{Environment, Runtime, Task};
use crate::job::{NodeId, TopicKey};
use crate::store::{Interest, Store, StoreError};

/// The pause before a topic whose task panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The tasks of a running node.
#[derive(Debug)]
pub struct Running {
    environment: Environment,
    order: watch::Sender<StopOrder>,
    tracker: TaskTracker,
    /// The topics among the tasks of `tracker`.
    topics: TaskTracker,
    tasks: Vec<Task>,
    registry: Arc<HealthRegistry>,
}

/// Starts the tasks of the node. The task of a topic that the store cannot serve yet waits until it can.
pub fn start(plan: &Plan) -> Running {
    let (order, ordered) = watch::channel(StopOrder::Continue);
    let channels = listeners_by_channel(plan);
    let registry = Arc::new(registry(plan, &channels));
    let mut running = Running {
        environment: plan.environment.clone(),
        order,
        tracker: TaskTracker::new(),
        topics: TaskTracker::new(),
        tasks: Vec::new(),
        registry: registry.clone(),
    };
    for (topic, stats) in plan.topics.iter().zip(&registry.topics) {
        running.start_topic(plan, topic, stats.clone(), &ordered);
    }
    for ((key, listeners), stats) in channels.into_iter().zip(&registry.channels) {
        running.start_channel(plan, key, listeners, stats.clone(), &ordered);
    }
    running.topics.close();
    running.tracker.close();
    running
}

type NamedListener = (&'static str, Arc<dyn ErasedBroadcast>);

fn listeners_by_channel(plan: &Plan) -> BTreeMap<&TopicKey, Vec<NamedListener>> {
    let mut channels: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for broadcast in &plan.broadcasts {
        for channel in &broadcast.channels {
            channels.entry(channel).or_default().push((broadcast.name, broadcast.listener.clone()));
        }
    }
    channels
}

/// The stats of every topic and channel, in their order. The tasks of the node update them.
fn registry(plan: &Plan, channels: &BTreeMap<&TopicKey, Vec<NamedListener>>) -> HealthRegistry {
    let changed = Arc::<Notify>::default();
    let topic = |topic: &TopicPlan| {
        let listener = format!("{} ({})", topic.name, topic.declared_at);
        Arc::new(TopicStats::new(topic.key.topic.to_string(), listener, topic.listing.to_string(), changed.clone()))
    };
    let channel = |(key, listeners): (&&TopicKey, &Vec<NamedListener>)| {
        let names: Vec<_> = listeners.iter().map(|(name, _)| *name).collect();
        Arc::new(ChannelStats::new(key.topic.to_string(), names.join(", "), changed.clone()))
    };
    HealthRegistry {
        app: plan.app.to_string(),
        node: plan.node.to_string(),
        store: plan.store.url(),
        settings: plan.listing.to_string(),
        topics: plan.topics.iter().map(topic).collect(),
        channels: channels.iter().map(channel).collect(),
        changed: changed.clone(),
    }
}

impl Running {
    fn start_topic(
        &mut self,
        plan: &Plan,
        topic: &TopicPlan,
        stats: Arc<TopicStats>,
        ordered: &watch::Receiver<StopOrder>,
    ) {
        let is_refused = plan.refused.get(&topic.key).inspect(|error| _ = stats.store_error(error)).is_some();
        let parts = Parts {
            key: topic.key.clone(),
            listener: topic.listener.clone(),
            topic: topic.settings.clone(),
            node: plan.settings.clone(),
            environment: plan.environment.clone(),
            stats,
        };
        let (store, node, ordered) = (plan.store.clone(), plan.node.clone(), ordered.clone());
        let task = async move {
            let Parts { key, environment, stats, node: settings, .. } = &parts;
            let store_error = |error: &StoreError| _ = stats.store_error(error);
            let call_timeout = settings.call_timeout;
            if !is_refused || opened(&store, key, environment, call_timeout, ordered.clone(), store_error).await {
                keep_running(parts, store, node, ordered).await;
            }
        };
        self.tasks
            .push(self.environment.spawn(Runtime::Own, self.tracker.track_future(self.topics.track_future(task))));
    }

    fn start_channel(
        &mut self,
        plan: &Plan,
        key: &TopicKey,
        listeners: Vec<NamedListener>,
        stats: Arc<ChannelStats>,
        ordered: &watch::Receiver<StopOrder>,
    ) {
        // With the node's id, because the store signals an earlier broadcast to the publisher only.
        let interest = Interest { node: Some(plan.node.clone()), broadcasts: true };
        let (store, environment, ordered) = (plan.store.clone(), self.environment.clone(), ordered.clone());
        let (key, node, settings) = (key.clone(), plan.node.clone(), plan.settings.clone());
        let topics = self.topics.clone();
        let is_refused = plan.refused.get(&key).inspect(|error| stats.store_error(error)).is_some();
        let task = async move {
            let store_error = |error: &StoreError| stats.store_error(error);
            let call_timeout = settings.call_timeout;
            if is_refused && !opened(&store, &key, &environment, call_timeout, ordered.clone(), store_error).await {
                return;
            }
            let subscription =
                Subscription::new(store.clone(), key.clone(), interest, environment.clone(), call_timeout);
            let channel = Channel {
                key,
                link: None,
                failures: 0,
                arrivals: Arrivals::default(),
                store,
                node,
                subscription,
                environment,
                settings,
                listeners,
                stats,
                topics,
            };
            channel.run(ordered).await;
        };
        self.tasks.push(self.environment.spawn(Runtime::Own, self.tracker.track_future(task)));
    }

    /// The state of the node.
    pub fn health(&self) -> Health {
        self.registry.health()
    }

    pub(super) fn probe(&self) -> HealthProbe {
        HealthProbe(Arc::clone(&self.registry))
    }

    /// Waits until every topic and channel is in touch with the store.
    pub async fn ready(&self) {
        self.registry.ready().await;
    }

    /// Tells every task to stop, and gives handlers `grace` from now. A second call can only shorten the grace.
    pub fn order_stop(&self, grace: Duration) {
        self.registry.stopping();
        let wanted = self.environment.now() + grace;
        self.order.send_modify(|order| {
            let grace_until = match *order {
                StopOrder::Stop { grace_until } => grace_until.min(wanted),
                StopOrder::Continue => wanted,
            };
            *order = StopOrder::Stop { grace_until };
        });
    }

    /// Waits until every task has stopped.
    pub async fn stopped(&self) {
        self.tracker.wait().await;
    }

    /// Ends every task at once, as a power cut would. For simulations.
    #[cfg(any(test, feature = "testing"))]
    pub fn kill(&self) {
        self.tasks.iter().for_each(Task::abort);
    }
}

/// Runs a topic until it stops, and restarts it after a panic of dq itself. A topic that panics during a stop is restarted
/// once, to give back what it held. After a second panic other nodes reclaim that, so that the node comes to its end.
async fn keep_running(parts: Parts, store: Arc<dyn Store>, node: NodeId, ordered: watch::Receiver<StopOrder>) {
    let environment = parts.environment.clone();
    loop {
        let was_stopping = *ordered.borrow() != StopOrder::Continue;
        let run = async {
            Topic::new(parts.clone(), store.clone(), node.clone(), ordered.clone()).run().await;
        };
        let Err(panic) = AssertUnwindSafe(run).catch_unwind().await else { return };
        let text = panic_message(&*panic);
        tracing::error!(topic = %parts.key, panic = text, "dq panicked in this topic and restarts it; please report this as a bug");
        parts.stats.restarted(&text);
        if was_stopping {
            return;
        }
        environment.sleep_until(environment.now() + RESTART_PAUSE).await;
    }
}

//! The supervisor: starts what a node consists of, starts it again when dq itself panics, and tells it to stop.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`
//!
//! It is the only one that starts tasks of the node besides `execute` (handlers) and `broadcast` (listeners).

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

use super::broadcast::Channel;
use super::channel_health::ChannelGauge;
use super::health::{Gauge, Health};
use super::plan::{Plan, TopicPlan};
use super::probe::{Board, HealthProbe};
use super::refused::opened;
use super::subscription::Subscription;
use super::topic::line::Line;
use super::topic::stopping::StopOrder;
use super::topic::{Parts, Topic};
use crate::broadcast::ErasedBroadcast;
use crate::environment::{Environment, Place, Task};
use crate::job::{NodeId, TopicKey};
use crate::store::{Interest, Store, StoreError};

/// The pause before a topic whose task panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// A node that runs.
#[derive(Debug)]
pub struct Running {
    environment: Environment,
    order: watch::Sender<StopOrder>,
    tracker: TaskTracker,
    /// Those of `tracker` that are a topic's.
    topics: TaskTracker,
    tasks: Vec<Task>,
    board: Arc<Board>,
}

/// Starts the tasks of the node. One that the store cannot serve yet stands still and says so.
pub fn start(plan: &Plan) -> Running {
    let (order, ordered) = watch::channel(StopOrder::Work);
    let channels = listeners_by_channel(plan);
    let board = Arc::new(board(plan, &channels));
    let mut running = Running {
        environment: plan.environment.clone(),
        order,
        tracker: TaskTracker::new(),
        topics: TaskTracker::new(),
        tasks: Vec::new(),
        board: board.clone(),
    };
    for (topic, gauge) in plan.topics.iter().zip(&board.topics) {
        running.start_topic(plan, topic, gauge.clone(), &ordered);
    }
    for ((key, listeners), gauge) in channels.into_iter().zip(&board.channels) {
        running.start_channel(plan, key, listeners, gauge.clone(), &ordered);
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

/// Where the tasks of the node will write down how it is: a gauge for each topic and channel, in their order.
fn board(plan: &Plan, channels: &BTreeMap<&TopicKey, Vec<NamedListener>>) -> Board {
    let changed = Arc::<Notify>::default();
    let topic = |topic: &TopicPlan| {
        let listener = format!("{} ({})", topic.name, topic.declared_at);
        Arc::new(Gauge::new(topic.key.topic.to_string(), listener, topic.listing.to_string(), changed.clone()))
    };
    let channel = |(key, listeners): (&&TopicKey, &Vec<NamedListener>)| {
        let names: Vec<_> = listeners.iter().map(|(name, _)| *name).collect();
        Arc::new(ChannelGauge::new(key.topic.to_string(), names.join(", "), changed.clone()))
    };
    Board {
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
    fn start_topic(&mut self, plan: &Plan, topic: &TopicPlan, gauge: Arc<Gauge>, ordered: &watch::Receiver<StopOrder>) {
        let is_refused = plan.refused.get(&topic.key).inspect(|error| _ = gauge.trouble(error)).is_some();
        let parts = Parts {
            key: topic.key.clone(),
            listener: topic.listener.clone(),
            topic: topic.settings.clone(),
            node: plan.settings.clone(),
            environment: plan.environment.clone(),
            gauge,
            no_headers: Arc::from([]),
        };
        let (store, node, ordered) = (plan.store.clone(), plan.node.clone(), ordered.clone());
        let task = async move {
            let Parts { key, environment, gauge, node: settings, .. } = &parts;
            let trouble = |error: &StoreError| _ = gauge.trouble(error);
            let patience = settings.call_timeout;
            if !is_refused || opened(&store, key, environment, patience, ordered.clone(), trouble).await {
                keep_running(parts, store, node, ordered).await;
            }
        };
        self.tasks.push(self.environment.spawn(Place::Link, self.tracker.track_future(self.topics.track_future(task))));
    }

    fn start_channel(
        &mut self,
        plan: &Plan,
        key: &TopicKey,
        listeners: Vec<NamedListener>,
        gauge: Arc<ChannelGauge>,
        ordered: &watch::Receiver<StopOrder>,
    ) {
        // As a node, too: an earlier broadcast is signalled to the node that looks after them.
        let interest = Interest { node: Some(plan.node.clone()), casts: true };
        let (store, environment, ordered) = (plan.store.clone(), self.environment.clone(), ordered.clone());
        let (key, node, settings) = (key.clone(), plan.node.clone(), plan.settings.clone());
        let topics = self.topics.clone();
        let is_refused = plan.refused.get(&key).inspect(|error| gauge.trouble(error)).is_some();
        let task = async move {
            let trouble = |error: &StoreError| gauge.trouble(error);
            let patience = settings.call_timeout;
            if is_refused && !opened(&store, &key, &environment, patience, ordered.clone(), trouble).await {
                return;
            }
            let subscription = Subscription::new(store.clone(), key.clone(), interest, environment.clone(), patience);
            let channel = Channel {
                key,
                link: None,
                failures: 0,
                store,
                node,
                subscription,
                environment,
                settings,
                listeners,
                gauge,
                topics,
            };
            channel.run(ordered).await;
        };
        self.tasks.push(self.environment.spawn(Place::Link, self.tracker.track_future(task)));
    }

    /// How the node is.
    pub fn health(&self) -> Health {
        self.board.health()
    }

    pub(super) fn probe(&self) -> HealthProbe {
        HealthProbe(Arc::clone(&self.board))
    }

    /// Waits until everything is in touch with the store.
    pub async fn ready(&self) {
        self.board.ready().await;
    }

    /// Tells every task to stop, giving handlers `grace` from now. A second call can only shorten the grace.
    pub fn order_stop(&self, grace: Duration) {
        self.board.stopping();
        let wanted = self.environment.now() + grace;
        self.order.send_modify(|order| {
            let grace_until = match *order {
                StopOrder::Stop { grace_until } => grace_until.min(wanted),
                StopOrder::Work => wanted,
            };
            *order = StopOrder::Stop { grace_until };
        });
    }

    /// Waits until every task has stopped.
    pub async fn stopped(&self) {
        self.tracker.wait().await;
    }

    /// Ends every task where it is, as a power cut would. For simulations.
    #[cfg(any(test, feature = "testing"))]
    pub fn kill(&self) {
        self.tasks.iter().for_each(Task::abort);
    }
}

/// Runs a topic until it stops; a panic of dq itself starts it again, also to give back what it held when the node is
/// stopping, but then once only: other nodes take what is left.
async fn keep_running(parts: Parts, store: Arc<dyn Store>, node: NodeId, ordered: watch::Receiver<StopOrder>) {
    loop {
        let (key, environment) = (parts.key.clone(), parts.environment.clone());
        let was_stopping = *ordered.borrow() != StopOrder::Work;
        let run = async {
            let (store, patience) = (&store, parts.node.call_timeout);
            let interest = Interest { node: Some(node.clone()), casts: false };
            let subscription = Subscription::new(store.clone(), key.clone(), interest, environment.clone(), patience);
            let line = Line::new(store.clone(), key.clone(), node.clone(), environment.clone(), patience);
            Topic::new(parts.clone(), line, subscription, ordered.clone()).run().await;
        };
        let Err(panic) = AssertUnwindSafe(run).catch_unwind().await else { return };
        let text = super::execute::panic_message(&*panic);
        tracing::error!(topic = %key, panic = text, "dq panicked in this topic, starting it again: please report this");
        parts.gauge.restarted(&text);
        if was_stopping {
            return; // one that panics again and again must not keep the node from its end
        }
        environment.sleep_until(environment.now() + RESTART_PAUSE).await;
    }
}

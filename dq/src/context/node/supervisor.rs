//! The supervisor: it starts the tasks of a node, restarts one after a panic of dq itself, and tells all tasks to stop.
//!
//! Only two other places start tasks of a node: `topic/event_loop.rs` starts handlers, `broadcast.rs` its listeners.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::broadcast::{self, Channel};
use super::channel_stats::ChannelStats;
use super::health::{HealthProbe, HealthRegistry};
use super::refused::Opening;
use super::{Plan, TopicPlan};
use crate::broadcast::ErasedBroadcast;
use crate::context::node_permits::{NodePermits, Share};
use crate::context::panic_message;

use crate::context::topic::StopOrder;
use crate::context::topic::stats::{TopicEnding, TopicStats};
use crate::context::topic::{Parts, Topic, WaitingBytes};
use crate::environment::{Environment, Runtime, Task};
use crate::job::TopicKey;
use crate::store::{HistorySetting, Outage};

/// The pause before a task that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The tasks of a running node.
#[derive(Debug)]
pub struct Running {
    environment: Environment,
    /// One for each task. A channel wakes many receivers in a random order, which no seed of a simulation decides.
    orders: Vec<watch::Sender<StopOrder>>,
    tracker: TaskTracker,
    /// The topics among the tasks of `tracker`.
    topics: TaskTracker,
    tasks: Vec<Task>,
    registry: Arc<HealthRegistry>,
    waiting: WaitingBytes,
    outage: Outage,
}

/// Starts the tasks of the node. The task of a topic that the store cannot serve yet waits until it can.
pub fn start(plan: &Plan) -> Running {
    let channels = listeners_by_channel(plan);
    let outage = Outage::new(plan.environment.clone(), plan.store.url());
    if plan.refused.values().any(|error| error.is_outage()) {
        outage.was_told();
    }
    let registry = Arc::new(registry(plan, &channels, &outage));
    let mut running = Running {
        environment: plan.environment.clone(),
        orders: Vec::new(),
        tracker: TaskTracker::new(),
        topics: TaskTracker::new(),
        tasks: Vec::new(),
        registry: registry.clone(),
        waiting: WaitingBytes::default(),
        outage,
    };
    let concurrency = plan.topics.iter().map(|topic| topic.settings.concurrency);
    let shares = NodePermits::shares(plan.settings.node_concurrency, concurrency);
    for ((topic, stats), permits) in plan.topics.iter().zip(&registry.topics).zip(shares) {
        running.start_topic(plan, topic, stats.clone(), permits);
    }
    for ((key, listeners), stats) in channels.into_iter().zip(&registry.channels) {
        running.start_channel(plan, key, listeners, stats.clone());
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
fn registry(plan: &Plan, channels: &BTreeMap<&TopicKey, Vec<NamedListener>>, outage: &Outage) -> HealthRegistry {
    let topic = |topic: &TopicPlan| {
        let listener = format!("{} ({})", topic.name, topic.declared_at);
        Arc::new(TopicStats::new(
            topic.key.topic.to_string(),
            listener,
            topic.listing.to_string(),
            topic.settings.lateness_objective,
            outage,
        ))
    };
    let channel = |(key, listeners): (&&TopicKey, &Vec<NamedListener>)| {
        let names: Vec<_> = listeners.iter().map(|(name, _)| *name).collect();
        Arc::new(ChannelStats::new(key.topic.to_string(), names.join(", "), outage))
    };
    HealthRegistry {
        app: plan.app.to_string(),
        node: plan.node.to_string(),
        store: plan.store.url(),
        settings: plan.listing.to_string(),
        topics: plan.topics.iter().map(topic).collect(),
        channels: channels.iter().map(channel).collect(),
        changed: outage.changed(),
    }
}

impl Running {
    /// The stop order for one more task.
    fn order(&mut self) -> watch::Receiver<StopOrder> {
        let (order, ordered) = watch::channel(StopOrder::Continue);
        self.orders.push(order);
        ordered
    }

    /// What a task waits for before it uses a topic that the store may have refused to serve.
    fn opening(&self, plan: &Plan, key: &TopicKey, is_refused: bool, ordered: &watch::Receiver<StopOrder>) -> Opening {
        Opening {
            store: plan.store.clone(),
            key: key.clone(),
            environment: self.environment.clone(),
            call_timeout: plan.settings.call_timeout,
            ordered: ordered.clone(),
            is_refused: Arc::new(is_refused.into()),
            history: None,
        }
    }

    fn start_topic(&mut self, plan: &Plan, topic: &TopicPlan, stats: Arc<TopicStats>, permits: Share) {
        let is_refused = plan.refused.get(&topic.key).inspect(|error| stats.store_error(error)).is_some();
        let parts = Arc::new(Parts {
            key: topic.key.clone(),
            listener: topic.listener.clone(),
            topic: topic.settings.clone(),
            node: plan.settings.clone(),
            environment: plan.environment.clone(),
            stats: stats.clone(),
            permits,
            waiting: self.waiting.clone(),
            outage: self.outage.clone(),
            schedules: topic.schedules.as_slice().into(),
        });
        let ordered = self.order();
        let history = topic.settings.history.map(|moves| HistorySetting { moves, after: topic.settings.history_after });
        let opening = Opening { history, ..self.opening(plan, &topic.key, is_refused, &ordered) };
        let (store, node, stop) = (plan.store.clone(), plan.node.clone(), ordered.clone());
        let (listener, drops) = (topic.listener.clone(), plan.environment.clone());
        let run = move || -> BoxFuture<'static, ()> {
            let (opening, parts, store, node, stop) =
                (opening.clone(), parts.clone(), store.clone(), node.clone(), stop.clone());
            Box::pin(async move {
                if opening.opened(|error| parts.stats.store_error(error)).await {
                    Topic::new(parts, store, node, stop).run().await;
                }
            })
        };
        let restarted = move |panic: &str| stats.restarted(panic);
        let kept = keep_running(topic.key.clone(), plan.environment.clone(), ordered, restarted, run);
        let task = async move {
            kept.await;
            drop_where_handlers_run(&drops, listener);
        };
        self.tasks
            .push(self.environment.spawn(Runtime::Own, self.tracker.track_future(self.topics.track_future(task))));
    }

    fn start_channel(&mut self, plan: &Plan, key: &TopicKey, listeners: Vec<NamedListener>, stats: Arc<ChannelStats>) {
        let users: Vec<_> = listeners.iter().map(|(_, listener)| listener.clone()).collect();
        let is_refused = plan.refused.get(key).inspect(|error| stats.store_error(error)).is_some();
        let ordered = self.order();
        let opening = self.opening(plan, key, is_refused, &ordered);
        let parts = Arc::new(broadcast::Parts {
            key: key.clone(),
            store: plan.store.clone(),
            node: plan.node.clone(),
            environment: self.environment.clone(),
            settings: plan.settings.clone(),
            listeners,
            stats: stats.clone(),
            topics: self.topics.clone(),
            outage: self.outage.clone(),
        });
        let stop = ordered.clone();
        let run = move || -> BoxFuture<'static, ()> {
            let (opening, parts, stop) = (opening.clone(), parts.clone(), stop.clone());
            Box::pin(async move {
                if opening.opened(|error| parts.stats.store_error(error)).await {
                    Channel::new(parts).run(stop).await;
                }
            })
        };
        let restarted = move |panic: &str| stats.restarted(panic);
        let kept = keep_running(key.clone(), self.environment.clone(), ordered, restarted, run);
        let drops = plan.environment.clone();
        let task = async move {
            kept.await;
            drop_where_handlers_run(&drops, users);
        };
        self.tasks.push(self.environment.spawn(Runtime::Own, self.tracker.track_future(task)));
    }

    /// The outages of the node.
    pub(super) fn outage(&self) -> Outage {
        self.outage.clone()
    }

    /// The state of the node.
    #[cfg(any(test, feature = "testing"))]
    pub fn health(&self) -> super::health::Health {
        self.registry.health()
    }

    pub(super) fn probe(&self, provider_restarts: Arc<AtomicU64>) -> HealthProbe {
        HealthProbe { registry: Arc::clone(&self.registry), provider_restarts }
    }

    /// Waits until every topic and channel is in touch with the store.
    pub async fn ready(&self) {
        self.registry.ready().await;
    }

    pub(super) const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Tells every task to stop, and gives handlers `grace` from now. A second call can only shorten the grace.
    pub fn order_stop(&self, grace: Duration) {
        self.registry.stopping();
        let wanted = self.environment.now() + grace;
        for order in &self.orders {
            order.send_modify(|order| {
                let grace_until = match *order {
                    StopOrder::Stop { grace_until } => grace_until.min(wanted),
                    StopOrder::Continue => wanted,
                };
                *order = StopOrder::Stop { grace_until };
            });
        }
    }

    /// Whether something runs that nobody has told to stop.
    pub(super) fn works(&self) -> bool {
        self.orders.iter().any(|order| *order.borrow() == StopOrder::Continue)
    }

    /// What became of what each topic held when the stop was ordered.
    pub(super) fn endings(&self) -> impl Iterator<Item = TopicEnding> {
        self.registry.topics.iter().map(|stats| stats.ending())
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

/// Drops listeners on the user's runtime: their `Drop` is the user's code, and may block its thread.
fn drop_where_handlers_run(environment: &Environment, listeners: impl Send + 'static) {
    environment.spawn(Runtime::Handler, async move { drop(listeners) });
}

/// Runs the task of a topic or channel until it stops, and restarts it after a panic of dq itself. A task that panics during a
/// stop is restarted once, to give back what it held. After a second panic other nodes reclaim that, so that the node comes to
/// its end.
async fn keep_running(
    key: TopicKey,
    environment: Environment,
    ordered: watch::Receiver<StopOrder>,
    restarted: impl Fn(&str),
    run: impl Fn() -> BoxFuture<'static, ()>,
) {
    loop {
        let was_stopping = *ordered.borrow() != StopOrder::Continue;
        let Err(panic) = AssertUnwindSafe(async { run().await }).catch_unwind().await else { return };
        let text = panic_message(&*panic);
        tracing::error!(topic = %key.topic, panic = text, "dq panicked in this topic and restarts it; please report this as a bug");
        restarted(&text);
        if was_stopping {
            return;
        }
        environment.sleep_until(environment.now() + RESTART_PAUSE).await;
    }
}

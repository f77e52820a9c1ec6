//! The supervisor: it starts the tasks of a node, restarts one after a panic of dq itself, and tells all tasks to stop.
//!
//! The task of a topic that the store could not serve when the node started, because a key of the topic has a wrong type (rule 1) or
//! because the store could not be reached and the program waits for it, asks again until it can ([`Opening`]). Meanwhile everything else
//! on the node runs, and the topic has claimed nothing.
//!
//! Only two other places start tasks of a node: `topic/event_loop.rs` starts handlers, `broadcast.rs` its listeners.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use super::broadcast::{self, Channel};
use super::health::{ChannelStats, Health, HealthRegistry};
use super::{Plan, TopicPlan};
use crate::broadcast::ErasedBroadcast;
use crate::context::condition::{LiveCondition, TaskStats};
use crate::context::node_permits::{NodePermits, Share};
use crate::context::panic_message;
use crate::context::topic::stats::{Stopped, TopicStats};
use crate::context::topic::{Parts, Relay, RelayWake, StopOrder, Topic, WaitingBytes};
use crate::environment::{Environment, Runtime, Task};
use crate::job::TopicKey;
use crate::store::{HistorySetting, Outage, Store, StoreError, in_call_timeout};

/// The longest pause before a task that panicked starts again, at first and after many panics.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// After this time without a panic the pauses are short again.
const QUIET: Duration = Duration::from_secs(60);

/// The tasks of a running node.
#[derive(Debug)]
pub struct Running {
    pub(super) environment: Environment,
    /// One for each task. A channel wakes many receivers in a random order, which no seed of a simulation decides.
    orders: Vec<watch::Sender<StopOrder>>,
    tracker: TaskTracker,
    /// The topics among the tasks of `tracker`.
    topics: TaskTracker,
    tasks: Vec<Task>,
    pub(super) registry: Arc<HealthRegistry>,
    waiting: WaitingBytes,
    /// The outages of the node.
    pub(super) outage: Outage,
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
    let (app, node, settings) = (plan.app.to_string(), plan.node.to_string(), plan.listing.to_string());
    HealthRegistry {
        fixed: Health { app, node, store: plan.store.url(), settings, ..Health::default() },
        uses: Arc::downgrade(&plan.store),
        topics: plan.topics.iter().map(topic).collect(),
        channels: channels.iter().map(channel).collect(),
        changed: outage.changed(),
    }
}

impl Running {
    /// What a task waits for before it uses its topic, and its stop order.
    fn opening(&mut self, plan: &Plan, key: &TopicKey, stats: &dyn TaskStats) -> Opening {
        let (order, ordered) = watch::channel(None);
        self.orders.push(order);
        let refused = plan.refused.get(key).inspect(|error| stats.condition().store_error(error));
        Opening {
            store: plan.store.clone(),
            key: key.clone(),
            environment: plan.environment.clone(),
            call_timeout: plan.settings.call_timeout,
            ordered,
            is_refused: Arc::new(refused.is_some().into()),
            history: None,
        }
    }

    fn start_topic(&mut self, plan: &Plan, topic: &TopicPlan, stats: Arc<TopicStats>, permits: Share) {
        let opening = Opening { history: topic.history(), ..self.opening(plan, &topic.key, &*stats) };
        let parts = Arc::new(Parts {
            key: topic.key.clone(),
            store: plan.store.clone(),
            id: plan.node.clone(),
            listener: topic.listener.clone(),
            topic: topic.settings.clone(),
            node: plan.settings.clone(),
            environment: plan.environment.clone(),
            stats: stats.clone(),
            permits,
            waiting: self.waiting.clone(),
            outage: self.outage.clone(),
            relay: RelayWake::default(),
            schedules: topic.schedules.as_slice().into(),
            definitions: topic.definitions.clone(),
        });
        let stop = opening.ordered.clone();
        let (relays, beside) = (Arc::clone(&parts), opening.clone());
        let run = move || Topic::new(parts.clone(), stop.clone()).run().boxed();
        let task = keep_running(opening, stats.clone(), topic.listener.clone(), run);
        self.spawn(self.topics.track_future(task));
        self.start_relay(relays, beside, stats);
    }

    /// Starts the relay of a topic, which wakes it: so it need not wait until the store serves the topic.
    fn start_relay(&mut self, parts: Arc<Parts>, topic: Opening, stats: Arc<TopicStats>) {
        let (order, ordered) = watch::channel(None);
        self.orders.push(order);
        let (stop, over, listener) = (ordered.clone(), self.topics.clone(), parts.listener.clone());
        let opening = Opening { ordered, is_refused: Arc::default(), history: None, ..topic };
        let run = move || {
            let over = over.clone();
            Relay::new(parts.clone()).run(stop.clone(), async move { over.wait().await }).boxed()
        };
        self.spawn(keep_running(opening, stats, listener, run));
    }

    fn start_channel(&mut self, plan: &Plan, key: &TopicKey, listeners: Vec<NamedListener>, stats: Arc<ChannelStats>) {
        let opening = self.opening(plan, key, &*stats);
        let users: Vec<_> = listeners.iter().map(|(_, listener)| listener.clone()).collect();
        let parts = Arc::new(broadcast::Parts {
            key: key.clone(),
            store: plan.store.clone(),
            node: plan.node.clone(),
            environment: plan.environment.clone(),
            settings: plan.settings.clone(),
            listeners,
            stats: stats.clone(),
            topics: self.topics.clone(),
            outage: self.outage.clone(),
        });
        let stop = opening.ordered.clone();
        let run = move || Channel::new(parts.clone()).run(stop.clone()).boxed();
        self.spawn(keep_running(opening, stats, users, run));
    }

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(self.environment.spawn(Runtime::Own, self.tracker.track_future(task)));
    }

    /// Waits until every topic and channel is in touch with the store.
    pub async fn ready(&self) {
        self.registry.ready().await;
    }

    /// Tells every task to stop, and gives handlers `grace` from now. A second call can only shorten the grace.
    pub fn order_stop(&self, grace: Duration) {
        self.registry.stopping();
        let wanted = self.environment.now() + grace;
        for order in &self.orders {
            order.send_modify(|order| *order = Some(order.map_or(wanted, |until| until.min(wanted))));
        }
    }

    /// Whether something runs that nobody has told to stop.
    pub(super) fn works(&self) -> bool {
        self.orders.iter().any(|order| order.borrow().is_none())
    }

    /// What became of what the topics held when the stop was ordered.
    pub(super) fn ending(&self) -> Stopped {
        let mut all = Stopped::default();
        for topic in self.registry.topics.iter().map(|stats| stats.ending()) {
            all.finished += topic.finished;
            all.given_back += topic.given_back;
            all.cancelled += topic.cancelled;
            all.left += topic.left;
            all.still_running += topic.still_running;
        }
        all
    }

    /// Waits until every task has stopped.
    pub async fn stopped(&self) {
        self.tracker.wait().await;
    }

    /// Ends every task at once, as a power cut would. For simulations.
    #[cfg(feature = "testing")]
    pub fn kill(&self) {
        self.tasks.iter().for_each(Task::abort);
    }
}

impl Drop for Running {
    /// Without a supervisor nothing could stop the tasks.
    fn drop(&mut self) {
        self.order_stop(Duration::ZERO);
    }
}

/// The longest pause before the store is asked for the first time.
const FIRST_ASK: Duration = Duration::from_millis(100);

/// The longest pause before the store is asked again.
const MAX_ASK: Duration = Duration::from_secs(5);

/// A topic that its task may have to wait for.
#[derive(Debug, Clone)]
struct Opening {
    store: Arc<dyn Store>,
    key: TopicKey,
    environment: Environment,
    call_timeout: Duration,
    ordered: watch::Receiver<StopOrder>,
    /// Whether the store does not serve the topic yet. A task that starts again shares this with the one before.
    is_refused: Arc<AtomicBool>,
    /// What the topic is to keep of the histories of its jobs; `None`: what it keeps.
    history: Option<HistorySetting>,
}

impl Opening {
    /// Asks the store until it serves the topic, and until it knows what it keeps of histories; reports every error. Returns `false`
    /// if the node stops first.
    async fn opened(mut self, condition: &LiveCondition) -> bool {
        let (mut pauses, mut has_failed) = (0, self.is_refused.load(Relaxed));
        loop {
            if has_failed {
                if !self.pauses(pauses).await {
                    return false;
                }
                pauses += 1;
            }
            match self.ask().await {
                Ok(()) => return true,
                Err(error) => condition.store_error(&error),
            }
            has_failed = true;
        }
    }

    async fn ask(&self) -> Result<(), StoreError> {
        let Self { store, key, environment, call_timeout, .. } = self;
        if self.is_refused.load(Relaxed) {
            in_call_timeout(environment, *call_timeout, "open", store.open(key)).await?;
            tracing::info!(topic = %key.topic, "the store can serve the topic now; it starts");
            self.is_refused.store(false, Relaxed);
        }
        let Some(setting) = self.history else { return Ok(()) };
        let kept = store.keep_history(key, setting);
        match in_call_timeout(environment, *call_timeout, "keep_history", kept).await {
            Err(error) if !error.is_outage() => {
                tracing::warn!(topic = %key.topic, %error, "the topic starts without its `history_max`");
                Ok(())
            }
            kept => kept,
        }
    }

    /// Waits before the store is asked again. Returns `false` if the node stops meanwhile.
    async fn pauses(&mut self, failures: u32) -> bool {
        if self.ordered.borrow_and_update().is_some() {
            return false;
        }
        let environment = &self.environment;
        let again = environment.now() + environment.growing_pause(FIRST_ASK, MAX_ASK, failures, 2);
        tokio::select! {
            biased;
            _ = self.ordered.changed() => false,
            () = environment.sleep_until(again) => true,
        }
    }
}

/// Runs the task of a topic or channel until it stops, once the store serves it, and restarts it after a panic of dq itself. A topic
/// resumes by itself after most panics, with all that it holds (rule 34); here it begins without that. A task that panics during a stop is
/// restarted once, to give back what it held. After a second panic other nodes reclaim that, so that the node comes to its end. At last drops the listeners on the user's runtime: their `Drop` is the user's code, and may block its thread.
async fn keep_running(
    opening: Opening,
    stats: Arc<dyn TaskStats>,
    listeners: impl Send + 'static,
    run: impl Fn() -> BoxFuture<'static, ()>,
) {
    let (mut panics, environment) = (0_u32, &opening.environment);
    loop {
        let (was_stopping, since) = (opening.ordered.borrow().is_some(), environment.now());
        let task = async {
            if opening.clone().opened(stats.condition()).await {
                run().await;
            }
        };
        let Err(panic) = AssertUnwindSafe(task).catch_unwind().await else { break };
        let text = panic_message(&*panic);
        tracing::error!(topic = %opening.key.topic, panic = text, "dq panicked in this topic and restarts it; please report this as a bug");
        stats.count_restart();
        stats.condition().restarted(&text);
        if was_stopping {
            break;
        }
        let now = environment.now();
        panics = if now >= since + QUIET { 0 } else { panics };
        let pause = environment.growing_pause(FIRST_PAUSE, MAX_PAUSE, panics, 2);
        let mut ordered = opening.ordered.clone();
        tokio::select! {
            biased;
            Ok(()) = ordered.changed() => {}
            () = environment.sleep_until(now + pause) => {}
        }
        panics = panics.saturating_add(1);
    }
    drop(run); // it has them, too
    opening.environment.spawn(Runtime::Handler, async move { drop(listeners) });
}

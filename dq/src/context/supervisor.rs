//! The supervisor: starts what a node consists of, starts it again when dq itself panics, and tells it to stop.
//!
//! It is the only one that starts tasks of the node besides `execute` (handlers) and `broadcast` (listeners).

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::{Notify, watch};
use tokio_util::task::TaskTracker;

use super::broadcast::Channel;
use super::health::{Gauge, Health};
use super::link::Line;
use super::plan::{Plan, TopicPlan};
use super::shutdown::StopOrder;
use super::subscription::Subscription;
use super::topic::{Parts, Topic};
use crate::environment::{Environment, Place, Task};
use crate::job::{AppName, NodeId, TopicKey};
use crate::store::{Interest, Store, StoreError};

/// The pause before a topic whose task panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// A node that runs.
#[derive(Debug)]
pub(crate) struct Running {
    app: AppName,
    node: NodeId,
    store: Arc<dyn Store>,
    environment: Environment,
    order: watch::Sender<StopOrder>,
    tracker: TaskTracker,
    tasks: Vec<Task>,
    gauges: Vec<Arc<Gauge>>,
    channels: Vec<Arc<AtomicBool>>,
    changed: Arc<Notify>,
}

/// Opens every topic and starts its task.
///
/// # Errors
/// Every topic that cannot be opened, and why; then nothing was started.
pub(crate) async fn start(plan: Plan) -> Result<Running, Vec<(TopicKey, StoreError)>> {
    open_all(&plan).await?;
    let (order, ordered) = watch::channel(StopOrder::Work);
    let mut running = Running {
        app: plan.app.clone(),
        node: plan.node.clone(),
        store: plan.store.clone(),
        environment: plan.environment.clone(),
        order,
        tracker: TaskTracker::new(),
        tasks: Vec::new(),
        gauges: Vec::new(),
        channels: Vec::new(),
        changed: Arc::default(),
    };
    for topic in &plan.topics {
        running.start_topic(&plan, topic, &ordered);
    }
    running.start_channels(&plan, &ordered);
    running.tracker.close();
    Ok(running)
}

async fn open_all(plan: &Plan) -> Result<(), Vec<(TopicKey, StoreError)>> {
    let channels = plan.broadcasts.iter().flat_map(|broadcast| &broadcast.channels);
    let mut topics: Vec<_> = plan.topics.iter().map(|topic| &topic.key).chain(channels).collect();
    topics.sort();
    topics.dedup();
    let opened = join_all(topics.into_iter().map(|topic| async move {
        let too_late = plan.environment.sleep_until(plan.environment.now() + plan.settings.call_total);
        let opened = tokio::select! {
            biased;
            opened = plan.store.open(topic) => opened,
            () = too_late => Err(StoreError::Unavailable { operation: "open", reason: "no answer in time".into() }),
        };
        opened.map_err(|error| (topic.clone(), error))
    }));
    let problems: Vec<_> = opened.await.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

impl Running {
    fn start_topic(&mut self, plan: &Plan, topic: &TopicPlan, ordered: &watch::Receiver<StopOrder>) {
        let listener = format!("{} ({})", topic.name, topic.declared_at);
        let gauge = Arc::new(Gauge::new(
            topic.key.topic.to_string(),
            listener,
            topic.listing.to_string(),
            self.changed.clone(),
        ));
        self.gauges.push(gauge.clone());
        let parts = Parts {
            key: topic.key.clone(),
            listener: topic.listener.clone(),
            topic: topic.settings.clone(),
            node: plan.settings.clone(),
            environment: plan.environment.clone(),
            gauge,
            no_headers: Arc::from([]),
        };
        let task = keep_running(parts, plan.store.clone(), plan.node.clone(), ordered.clone());
        self.tasks.push(self.environment.spawn(Place::Link, self.tracker.track_future(task)));
    }

    fn start_channels(&mut self, plan: &Plan, ordered: &watch::Receiver<StopOrder>) {
        let mut channels: BTreeMap<&TopicKey, Vec<_>> = BTreeMap::new();
        for broadcast in &plan.broadcasts {
            for channel in &broadcast.channels {
                channels.entry(channel).or_default().push((broadcast.name, broadcast.listener.clone()));
            }
        }
        for (key, listeners) in channels {
            let ready = Arc::new(AtomicBool::new(false));
            self.channels.push(ready.clone());
            // As a node, too: an earlier broadcast is signalled to the node that looks after them.
            let interest = Interest { node: Some(plan.node.clone()), casts: true };
            let environment = self.environment.clone();
            let channel = Channel {
                key: key.clone(),
                link: plan.store.link(key, &plan.node),
                subscription: Subscription::new(plan.store.clone(), key.clone(), interest, environment.clone()),
                environment,
                settings: plan.settings.clone(),
                listeners,
                ready,
                changed: self.changed.clone(),
            };
            let task = self.tracker.track_future(channel.run(ordered.clone()));
            self.tasks.push(self.environment.spawn(Place::Link, task));
        }
    }

    pub(crate) fn health(&self) -> Health {
        let mut topics: Vec<_> = self.gauges.iter().map(|gauge| gauge.read()).collect();
        topics.sort_by(|a, b| a.topic.cmp(&b.topic));
        let casts_ready = self.channels.iter().all(|ready| ready.load(Relaxed));
        Health::new(self.app.to_string(), &self.node, self.store.url(), topics, casts_ready)
    }

    /// Waits until everything is in touch with the store.
    pub(crate) async fn ready(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // registered before the look, so that no change is missed
            if self.health().ready {
                return;
            }
            changed.await;
        }
    }

    /// Tells every task to stop, giving handlers `grace` from now. A second call can only shorten the grace.
    pub(crate) fn order_stop(&self, grace: Duration) {
        self.gauges.iter().for_each(|gauge| gauge.stopping());
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
    pub(crate) async fn stopped(&self) {
        self.tracker.wait().await;
    }

    /// Ends every task where it is, as a power cut would. For simulations.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill(&self) {
        self.tasks.iter().for_each(Task::abort);
    }
}

/// Runs a topic until it stops; a panic of dq itself starts it again, also to give back what it held when the node is
/// stopping, but then once only: other nodes take what is left.
async fn keep_running(parts: Parts, store: Arc<dyn Store>, node: NodeId, ordered: watch::Receiver<StopOrder>) {
    loop {
        let (key, environment) = (parts.key.clone(), parts.environment.clone());
        let interest = Interest { node: Some(node.clone()), casts: false };
        let subscription = Subscription::new(store.clone(), key.clone(), interest, environment.clone());
        let line = Line::new(store.clone(), key.clone(), node.clone(), environment.clone(), parts.node.call_timeout);
        let topic = Topic::new(parts.clone(), line, subscription, ordered.clone());
        let was_stopping = *ordered.borrow() != StopOrder::Work;
        let Err(panic) = AssertUnwindSafe(topic.run()).catch_unwind().await else { return };
        let text = super::execute::panic_message(&*panic);
        tracing::error!(topic = %key, panic = text, "dq panicked in this topic, starting it again: please report this");
        parts.gauge.restarted(&text);
        if was_stopping {
            return; // one that panics again and again must not keep the node from its end
        }
        environment.sleep_until(environment.now() + RESTART_PAUSE).await;
    }
}

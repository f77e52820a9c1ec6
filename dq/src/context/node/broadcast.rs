//! Broadcasts on this node: the task of a channel subscribes, publishes what is due, and hands what it receives to the
//! listeners.
//!
//! Every subscribed node publishes. One step takes due broadcasts out of the store and publishes them, so each is published
//! once, and each connected node receives it at most once. Each listener has a queue and handles one broadcast at a time. A
//! stopping node receives and publishes until its handlers are done, because a broadcast may concern what they work with.
//! Then it gives up its role, as a topic does.
//!
//! Broadcasts that are due together go out in parts. The publisher sends the next part once it has received the last one
//! itself: a server closes the connection of a subscriber that is tens of megabytes behind.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::arrivals::Arrivals;
use super::health::ChannelStats;
use super::listener_queue::{Delivered, ListenerQueue, Missed};
use crate::broadcast::ErasedBroadcast;
use crate::config::NodeSettings;
use crate::context::panic_message;
use crate::context::subscription::Subscription;
use crate::context::timer::Timer;
use crate::context::topic::StopOrder;
use crate::environment::{Environment, Runtime, Task};
use crate::job::{Cause, NodeId, Record, Sequence, TopicKey};
use crate::listener::Failure;
use crate::store::in_call_timeout;
use crate::store::step::{MAX_JOBS, Publish, Published, Release};
use crate::store::{BroadcastMessage, Interest, Link, Outage, Signal, Store};
use crate::telemetry;

/// How many bytes of records one step publishes. Servers allow a subscriber to be 8 MB behind for a minute, and 32 MB at any
/// time.
const PUBLISH_BYTES: usize = 1 << 20;

/// How long the publisher waits for its own broadcasts. They may be lost, and then they do not hold up the next ones.
const PACE: Duration = Duration::from_secs(5);

/// The longest pause after the first failed step. Each pause is a random part of its longest, at least a quarter.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after any failed step.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// What a channel is made from. The supervisor keeps it, so that the channel can start again after a panic of its task.
pub(super) struct Parts {
    pub(super) key: TopicKey,
    pub(super) store: Arc<dyn Store>,
    pub(super) node: NodeId,
    pub(super) environment: Environment,
    pub(super) settings: NodeSettings,
    pub(super) listeners: Vec<(&'static str, Arc<dyn ErasedBroadcast>)>,
    pub(super) stats: Arc<ChannelStats>,
    /// The topics of the node: while their handlers go on, the channel receives.
    pub(super) topics: TaskTracker,
    /// The outages of the node.
    pub(super) outage: Outage,
}

/// One channel on this node.
pub(super) struct Channel {
    parts: Arc<Parts>,
    /// The link to the store; `None` after it failed, and before the first step.
    link: Option<Arc<dyn Link>>,
    /// How many steps in a row failed.
    failures: u32,
    subscription: Subscription,
    arrivals: Arrivals,
    /// The last broadcast that went out: the next part follows once it has arrived.
    awaited: Option<u64>,
    /// Broadcasts that did not arrive.
    lost: Missed,
}

impl Channel {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        // With the node's id, because the store signals an earlier broadcast to the publisher only.
        let interest = Interest { node: Some(parts.node.clone()), broadcasts: true, moves: false };
        let (store, environment, party) = (parts.store.clone(), parts.environment.clone(), parts.outage.party());
        let call_timeout = parts.settings.call_timeout;
        let subscription = Subscription::new(store, parts.key.clone(), interest, environment, call_timeout, party);
        let (arrivals, awaited, lost) = (Arrivals::default(), None, Missed::default());
        Self { parts, link: None, failures: 0, subscription, arrivals, awaited, lost }
    }

    /// Runs until the node stops and its topics are over.
    pub(super) async fn run(mut self, stop: watch::Receiver<StopOrder>) {
        let workers = TaskTracker::new();
        let started = self.parts.listeners.iter().map(|listener| self.start_listener(listener, &workers));
        let (mut queues, tasks): (Vec<_>, Vec<_>) = started.unzip();
        workers.close();
        let mut timer = Timer::new(self.parts.environment.clone());
        let mut broadcast_at = None; // not before the subscription exists, or this node would miss the broadcast
        let (mut ordered, topics) = (stop.clone(), self.parts.topics.clone());
        let mut over = pin!(async move {
            // An error means that the supervisor is gone, so it is an order to stop, too.
            let _ = ordered.changed().await;
            topics.wait().await;
        });
        loop {
            tokio::select! {
                biased;
                () = &mut over => break,
                signal = self.subscription.next() => match signal {
                    Ok(Signal::Broadcast(message)) => {
                        self.hand_out(&mut queues, message);
                        if self.awaited.is_some_and(|number| self.arrivals.has(number)) {
                            (self.awaited, broadcast_at) = (None, Some(self.parts.environment.now()));
                        }
                    }
                    // The rest of what is going out goes first.
                    Ok(Signal::BroadcastDue) if self.awaited.is_some() => {}
                    Ok(Signal::BroadcastDue | Signal::Paused | Signal::StateChanged | Signal::Resubscribed) => broadcast_at = Some(self.parts.environment.now()),
                    Ok(
                        Signal::Due(_)
                        | Signal::Outbox
                        | Signal::Lease(..)
                        | Signal::Command(..)
                        | Signal::Moves(_)
                        | Signal::MovesMissed(_)
                        | Signal::Interrupted(_),
                    ) => {}
                    Err(error) => {
                        // Other nodes publish what this node would not receive.
                        broadcast_at = None;
                        self.parts.stats.condition.store_error(&error);
                    }
                },
                () = timer.until(broadcast_at) => {
                    let pause = self.publish().await;
                    broadcast_at = Some(self.parts.environment.now() + pause);
                }
            }
        }
        drop(queues);
        let environment = self.parts.environment.clone();
        tokio::join!(let_finish(&workers, &tasks, stop, &environment), self.release());
    }

    /// Gives up the role, so that another node publishes at once instead of after its fallback. Waits for the answer no longer
    /// than the call timeout.
    async fn release(&mut self) {
        let Some(link) = self.link.take() else { return };
        let (environment, call_timeout) = (&self.parts.environment, self.parts.settings.call_timeout);
        let released = link.step(Release { last_seen: Sequence::default() });
        let _ = in_call_timeout(environment, call_timeout, "release", released).await; // without it the role lapses
    }

    /// Publishes what is due. Returns after how long to do so again, unless what is awaited arrives before.
    async fn publish(&mut self) -> Duration {
        let period = self.parts.settings.poll_interval;
        let fallback = period - self.parts.environment.random_below(period / 5);
        let expires_after = self.parts.settings.broadcast_expires_after;
        let request = Publish { limit: MAX_JOBS, bytes: PUBLISH_BYTES, fallback, expires_after };
        let link = self.link.take().unwrap_or_else(|| self.parts.store.link(&self.parts.key, &self.parts.node));
        let (environment, call_timeout) = (&self.parts.environment, self.parts.settings.call_timeout);
        let answer = in_call_timeout(environment, call_timeout, "publish", link.step(request)).await;
        // A link that failed once may be broken for good, and a new one costs little.
        self.link = answer.is_ok().then_some(link);
        self.awaited = None;
        match answer {
            Ok(Published { published, dropped, last_number, sleep, more }) => {
                self.failures = 0;
                self.parts.stats.condition.contact();
                self.count_published(published as u64, dropped as u64);
                let lost = self.arrivals.published(last_number, published, self.parts.environment.now());
                self.count_lost(lost);
                if dropped > 0 {
                    tracing::warn!(channel = %self.parts.key.topic, broadcasts = dropped, "dropped broadcasts that no node published before they expired");
                }
                // A node that is not the publisher leaves the rest to it.
                if !more || !sleep.is_zero() || self.arrivals.has(last_number) {
                    return sleep;
                }
                self.awaited = Some(last_number);
                PACE
            }
            Err(error) => {
                self.parts.stats.condition.store_error(&error);
                tracing::debug!(channel = %self.parts.key.topic, error = %error, "cannot publish broadcasts; dq tries again");
                let pause = self.parts.environment.growing_pause(PAUSE, MAX_PAUSE, self.failures, 4);
                self.failures += 1;
                pause
            }
        }
    }

    fn count_published(&self, published: u64, expired: u64) {
        let mut counted = self.parts.stats.count();
        counted.published = counted.published.saturating_add(published);
        counted.expired = counted.expired.saturating_add(expired);
    }

    /// Counts broadcasts that were published and did not arrive.
    fn count_lost(&mut self, lost: u64) {
        self.parts.stats.count().missed += lost;
        if let Some(broadcasts) = self.lost.count(lost, self.parts.environment.now()) {
            tracing::warn!(channel = %self.parts.key.topic, broadcasts, "broadcasts did not arrive; the connection broke, or this node was too far behind");
        }
    }

    fn hand_out(&mut self, queues: &mut [ListenerQueue], message: BroadcastMessage) {
        let lost = self.arrivals.came(message.number);
        self.count_lost(lost);
        self.parts.stats.count().received += 1;
        let record = Record::from_bytes(message.record);
        let now = self.parts.environment.now();
        for queue in queues {
            if !queue.push(&self.parts.key.topic, Delivered { id: message.id.clone(), record: record.clone() }, now) {
                self.parts.stats.count().missed += 1;
            }
        }
    }

    fn start_listener(
        &self,
        (name, listener): &(&'static str, Arc<dyn ErasedBroadcast>),
        workers: &TaskTracker,
    ) -> (ListenerQueue, Task) {
        let (queue, deliveries) = ListenerQueue::new(name);
        let work = listen(self.parts.clone(), name, Arc::clone(listener), deliveries);
        let task = self.parts.environment.spawn(Runtime::Handler, workers.track_future(work));
        (queue, task)
    }
}

/// Lets the listeners finish what they have received, until the grace ends.
async fn let_finish(
    workers: &TaskTracker,
    tasks: &[Task],
    mut stop: watch::Receiver<StopOrder>,
    environment: &Environment,
) {
    loop {
        let grace_until = stop.borrow_and_update().unwrap_or_default();
        tokio::select! {
            biased;
            () = workers.wait() => return,
            Ok(()) = stop.changed() => {}
            () = environment.sleep_until(grace_until) => return tasks.iter().for_each(Task::abort),
        }
    }
}

/// Hands broadcasts to a listener of a channel, one after another, until the channel ends.
async fn listen(
    parts: Arc<Parts>,
    name: &'static str,
    listener: Arc<dyn ErasedBroadcast>,
    mut deliveries: mpsc::Receiver<Delivered>,
) {
    let (channel, environment, timeout) = (&parts.key.topic, &parts.environment, parts.settings.broadcast_timeout);
    let changes = environment.process().changes();
    while let Some(Delivered { id, record }) = deliveries.recv().await {
        let _entry = loop {
            // A broadcast waits while a job of this process runs alone (rule 19).
            match environment.process().enter(2 * timeout) {
                Some(entry) => break entry,
                None => changes.changed().await,
            }
        };
        let span = tracing::info_span!("dq.broadcast", %channel, job.id = %id, listener = name);
        let checked = record.checked();
        telemetry::link(&span, checked.iter().map(|metadata| &*metadata.headers));
        let handled = async {
            checked.map_err(|bad| Failure::new(Cause::Decode, bad.to_string()))?;
            Arc::clone(&listener).deliver(channel.clone(), id.clone(), record).await
        };
        let handled = handled.instrument(span);
        let too_late = environment.sleep_until(environment.now() + timeout);
        let failure = tokio::select! {
            biased;
            handled = AssertUnwindSafe(handled).catch_unwind() => match handled {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure.to_string(),
                Err(panic) => format!("it panicked: {}", panic_message(&*panic)),
            },
            () = too_late => format!("it did not return within {}", humantime::format_duration(timeout)),
        };
        parts.stats.count().failed += 1;
        tracing::error!(%channel, job.id = %id, listener = name, failure, "a broadcast listener failed");
    }
}

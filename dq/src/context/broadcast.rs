//! Broadcasts on this node: one task a channel subscribes, publishes what is due, and hands what it hears to the listeners.
//!
//! Whoever subscribes publishes: the step takes due broadcasts out of the store and publishes them in one, so each is
//! published once, and each connected node hears it at most once. Each listener has a queue and handles one at a time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc, watch};
use tracing::Instrument;

use super::shutdown::StopOrder;
use super::subscription::Subscription;
use super::timer::Timer;
use crate::broadcast::ErasedBroadcast;
use crate::config::NodeSettings;
use crate::environment::{Environment, Place};
use crate::job::{JobId, Record, TopicKey, TopicName};
use crate::store::step::{Cast, Casted, MOST_JOBS};
use crate::store::{Link, Signal, StoreError};

/// How many broadcasts wait for a slow listener before further ones are dropped.
const QUEUE: usize = 1_024;

/// How long a broadcast listener may take for one broadcast.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(30);

/// The least pause after a step that failed.
const PAUSE: Duration = Duration::from_millis(250);

struct Delivery {
    id: JobId,
    record: Record,
}

/// One channel on this node.
pub(super) struct Channel {
    pub(super) key: TopicKey,
    pub(super) link: Arc<dyn Link>,
    pub(super) subscription: Subscription,
    pub(super) environment: Environment,
    pub(super) settings: NodeSettings,
    pub(super) listeners: Vec<(&'static str, Arc<dyn ErasedBroadcast>)>,
    /// Whether the last step was answered.
    pub(super) ready: Arc<AtomicBool>,
    /// Told after each step.
    pub(super) changed: Arc<Notify>,
}

impl Channel {
    /// Runs until the node stops.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<StopOrder>) {
        let queues: Vec<_> = self.listeners.iter().map(|listener| self.start_listener(listener)).collect();
        let mut timer = Timer::new(self.environment.clone());
        let mut cast_at = None; // not before the subscription is there: nobody would hear it
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => break,
                signal = self.subscription.next() => match signal {
                    Signal::Cast(cast) => self.hand_out(&queues, cast),
                    Signal::CastDue | Signal::Resubscribed => cast_at = Some(self.environment.now()),
                    Signal::Due | Signal::Mark(..) => {}
                },
                () = timer.until(cast_at) => {
                    let pause = self.cast().await;
                    cast_at = Some(self.environment.now() + pause);
                }
            }
        }
    }

    /// Publishes what is due; how long to sleep then.
    async fn cast(&mut self) -> Duration {
        let period = self.settings.fallback_scan;
        let fallback = period - self.environment.random_below(period / 3);
        let request = Cast { limit: MOST_JOBS, fallback, expires_after: self.settings.broadcast_expires_after };
        let given_up = self.environment.sleep_until(self.environment.now() + self.settings.call_timeout);
        let answer = tokio::select! {
            biased;
            answer = self.link.cast(request) => answer,
            () = given_up => Err(StoreError::Unavailable { operation: "cast", reason: "no answer in time".into() }),
        };
        self.ready.store(answer.is_ok(), Relaxed);
        self.changed.notify_waiters();
        match answer {
            Ok(Casted { more: true, .. }) => Duration::ZERO,
            Ok(casted) => {
                if casted.dropped > 0 {
                    tracing::warn!(channel = %self.key, broadcasts = casted.dropped, "broadcasts that nobody served in time were dropped");
                }
                casted.sleep
            }
            Err(error) => {
                tracing::warn!(channel = %self.key, error = %error, "cannot publish broadcasts, trying again");
                PAUSE + self.environment.random_below(PAUSE * 3)
            }
        }
    }

    fn hand_out(&self, queues: &[mpsc::Sender<Delivery>], cast: crate::store::Cast) {
        let record = Record::from_bytes(cast.record);
        for (queue, (name, _)) in queues.iter().zip(&self.listeners) {
            if queue.try_send(Delivery { id: cast.id.clone(), record: record.clone() }).is_err() {
                tracing::warn!(channel = %self.key, job.id = %cast.id, listener = name, "the listener is {QUEUE} broadcasts behind: this one is dropped");
            }
        }
    }

    fn start_listener(&self, (name, listener): &(&'static str, Arc<dyn ErasedBroadcast>)) -> mpsc::Sender<Delivery> {
        let (queue, deliveries) = mpsc::channel(QUEUE);
        let worker = listen(self.key.topic.clone(), name, Arc::clone(listener), deliveries, self.environment.clone());
        self.environment.spawn(Place::Handler, worker);
        queue
    }
}

/// Hands one broadcast after the other to a listener, until the channel is gone.
async fn listen(
    channel: TopicName,
    name: &'static str,
    listener: Arc<dyn ErasedBroadcast>,
    mut deliveries: mpsc::Receiver<Delivery>,
    environment: Environment,
) {
    while let Some(Delivery { id, record }) = deliveries.recv().await {
        let span = tracing::info_span!("dq.broadcast", %channel, job.id = %id, listener = name);
        let handled = Arc::clone(&listener).deliver(channel.clone(), id.clone(), record).instrument(span);
        let too_late = environment.sleep_until(environment.now() + LISTENER_TIMEOUT);
        let failure = tokio::select! {
            biased;
            handled = AssertUnwindSafe(handled).catch_unwind() => match handled {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure.to_string(),
                Err(_) => "it panicked".into(),
            },
            () = too_late => "it did not return within 30s".into(),
        };
        tracing::error!(%channel, job.id = %id, listener = name, failure, "a broadcast listener failed");
    }
}

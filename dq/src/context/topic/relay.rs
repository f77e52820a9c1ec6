//! Relay: brings the follow-ups in the outbox of a topic to their targets (rule 18).
//!
//! A task of its own beside the topic, which it does not hold up. It sleeps until an outcome of this node had follow-ups, or a scan has
//! found that others may have left some. The store gives the entries to one node at a time, for as long as it asks again in time. Each target
//! takes its entries in order; those of a target that takes none now wait, and others continue.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::{Notify, watch};

use super::{Parts, StopOrder};
use crate::context::timer::Timer;
use crate::environment::Environment;
use crate::job::{TopicKey, TopicName};
use crate::provider::RefusedJob;
use crate::store::in_call_timeout;
use crate::store::{
    BatchAnswer, FollowUpOutcome, MOST_ENTRIES, OUT_OF_ORDER, OutboxEntry, Producer, Relay as Request, Relayed,
    StoreError, relay_of,
};

/// For how long the store gives no entries to others.
const LEASE: Duration = Duration::from_secs(5);
/// How many entries a round has at most, so that one ends within the lease.
const ROUND: usize = 256;
const _: () = assert!(ROUND <= MOST_ENTRIES);
/// How many bytes of entries a round has, about.
const ROUND_BYTES: usize = 1 << 20;
/// How long a target rests at first that takes no entries, and at most.
const FIRST_REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(5);
/// How long a last round may take when the node stops.
const LAST_ROUNDS: Duration = Duration::from_secs(5);

/// Wakes the relay of a topic.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelayWake(Arc<Notify>);

impl RelayWake {
    /// There are follow-ups in the outbox, or there may be.
    pub(super) fn wake(&self) {
        self.0.notify_one();
    }
}

/// The relay of one topic.
pub(crate) struct Relay {
    parts: Arc<Parts>,
    targets: BTreeMap<TopicName, Target>,
    /// The last entry that each target has answered since the store was asked.
    arrived: BTreeMap<TopicName, u64>,
    /// How many rounds in a row the store did not answer.
    failures: u32,
}

/// A target, as this relay knows it.
struct Target {
    producer: Arc<dyn Producer>,
    /// Until when it rests, because it takes nothing now, and how often in a row.
    rests: Option<Duration>,
    failures: u32,
    /// The first entry, which it has refused because one before it has not arrived. If that is not in the outbox either, a failover of the
    /// target's server took back what had arrived.
    early: Option<u64>,
}

impl Relay {
    pub(crate) fn new(parts: Arc<Parts>) -> Self {
        Self { parts, targets: BTreeMap::new(), arrived: BTreeMap::new(), failures: 0 }
    }

    /// Runs until the node stops and its topics are over.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<StopOrder>, topics: impl Future<Output = ()>) {
        let wake = self.parts.relay.clone();
        let mut timer = Timer::new(self.environment().clone());
        let mut over = pin!(async move {
            // An error means that the supervisor is gone, so it is an order to stop, too.
            let _ = stop.changed().await;
            topics.await;
        });
        let mut at = None;
        loop {
            tokio::select! {
                biased;
                () = &mut over => break,
                () = wake.0.notified() => {}
                () = timer.until(at) => {}
            }
            at = self.rounds().await;
        }
        // The topics have sent their last outcomes.
        let environment = self.environment().clone();
        let end = environment.sleep_until(environment.now() + LAST_ROUNDS);
        tokio::select! {
            biased;
            _ = self.rounds() => {}
            () = end => {}
        }
    }

    fn environment(&self) -> &Environment {
        &self.parts.environment
    }

    /// Relays until there is nothing to do now. Returns when there is, unless something wakes the relay before.
    async fn rounds(&mut self) -> Option<Duration> {
        loop {
            if let ControlFlow::Break(at) = self.round().await {
                return at;
            }
        }
    }

    async fn round(&mut self) -> ControlFlow<Option<Duration>> {
        let now = self.environment().now();
        let rests = |target: &Target| target.rests.is_some_and(|until| now < until);
        let without = self.targets.iter().filter(|(_, target)| rests(target)).map(|(name, _)| name.clone()).collect();
        let request = Request {
            node: self.parts.id.clone(),
            lease: LEASE,
            arrived: self.arrived.iter().map(|(target, position)| (target.clone(), *position)).collect(),
            without,
            limit: ROUND,
            bytes: ROUND_BYTES,
        };
        let asked = self.parts.store.relay(&self.parts.key, &request);
        let answer = in_call_timeout(self.environment(), self.parts.node.call_timeout, "relay", asked).await;
        let Relayed { busy, entries, waiting } = match answer {
            Ok(relayed) => relayed,
            Err(error) => {
                tracing::debug!(topic = %self.parts.key.topic, %error, "cannot relay follow-ups; dq tries again");
                let pause = self.environment().growing_pause(FIRST_REST, LONGEST_REST, self.failures, 2);
                self.failures = self.failures.saturating_add(1);
                return ControlFlow::Break(Some(now + pause));
            }
        };
        self.failures = 0;
        if let Some(busy) = busy {
            return ControlFlow::Break(Some(now + busy + Duration::from_millis(1)));
        }
        self.arrived.clear();
        self.parts.stats.follow_ups.set(waiting);
        if entries.is_empty() {
            let rests = self.targets.values().filter_map(|target| target.rests);
            return ControlFlow::Break(rests.filter(|until| now < *until).min());
        }
        self.send(entries).await;
        ControlFlow::Continue(())
    }

    /// Sends the entries to their targets, to all of these at the same time.
    async fn send(&mut self, entries: Vec<OutboxEntry>) {
        let mut of_targets: Vec<(TopicName, Vec<OutboxEntry>)> = Vec::new();
        for entry in entries {
            match of_targets.last_mut() {
                Some((target, entries)) if *target == entry.target => entries.push(entry),
                _ => of_targets.push((entry.target.clone(), vec![entry])),
            }
        }
        let sent = of_targets.into_iter().map(|(target, mut entries)| {
            let (parts, known) = (Arc::clone(&self.parts), self.target(&target));
            let (producer, first) = (Arc::clone(&known.producer), entries.first().map(|entry| entry.position));
            if let Some(early) = entries.first_mut().filter(|_| known.early.is_some() && known.early == first) {
                tracing::warn!(topic = %parts.key.topic, %target, "the topic has lost follow-ups that had arrived, in a failover: later ones follow without them");
                early.after = 0;
            }
            async move {
                let (arrived, sent) = send_all(&parts, &*producer, entries).await;
                (target, first.filter(|_| arrived.is_none()), arrived, sent.err())
            }
        });
        let sent: Vec<_> = sent.collect();
        let now = self.environment().now();
        for (target, refused, arrived, error) in join_all(sent).await {
            self.after(&target, refused, error.as_ref(), now);
            self.arrived.extend(arrived.map(|position| (target, position)));
        }
    }

    fn target(&mut self, name: &TopicName) -> &mut Target {
        let (store, key) = (&self.parts.store, &self.parts.key);
        self.targets.entry(name.clone()).or_insert_with(|| {
            let target = TopicKey { app: key.app.clone(), topic: name.clone() };
            let producer = store.producer(&target, &relay_of(&key.topic));
            Target { producer, rests: None, failures: 0, early: None }
        })
    }

    /// A target has taken its entries, or rests after this error. `refused` is its first entry, if it did not take that.
    fn after(&mut self, name: &TopicName, refused: Option<u64>, error: Option<&StoreError>, now: Duration) {
        let Some(error) = error else {
            // Its producer costs little, and topics may be many.
            let target = self.target(name);
            (target.rests, target.failures, target.early) = (None, 0, None);
            return;
        };
        let (failures, early) = (self.target(name).failures, refused.filter(|_| is_too_early(error)));
        if failures == 0 && is_too_early(error) {
            let target = self.target(name);
            (target.failures, target.early) = (1, early);
            return;
        }
        let pause = self.environment().growing_pause(FIRST_REST, LONGEST_REST, failures, 2);
        let topic = &self.parts.key.topic;
        if failures == 0 || (failures == 1 && is_too_early(error)) {
            tracing::warn!(%topic, target = %name, %error, "the follow-ups for this topic wait; dq tries again");
        }
        // A new one, because a producer may be broken for good.
        self.targets.remove(name);
        let target = self.target(name);
        (target.rests, target.failures, target.early) = (Some(now + pause), failures.saturating_add(1), early);
    }
}

/// Sends the entries of one target without waiting for the answers in between: one that comes too early is refused, because it names the
/// one before it. Returns the position of the last one that was answered, too.
async fn send_all(
    parts: &Parts,
    producer: &dyn Producer,
    entries: Vec<OutboxEntry>,
) -> (Option<u64>, Result<(), StoreError>) {
    let sent: Vec<_> =
        entries.into_iter().map(|entry| (entry.target.clone(), entry.position, producer.relay(entry))).collect();
    let mut arrived = None;
    for (target, position, answer) in sent {
        let answer = match in_call_timeout(&parts.environment, parts.node.call_timeout, "relay", answer).await {
            Ok(answer) => answer,
            Err(error) => return (arrived, Err(error)),
        };
        arrived = Some(position);
        let micros = parts.environment.wall().as_millis().saturating_mul(1_000);
        parts.stats.relayed(micros.saturating_sub(position));
        let BatchAnswer::Done(outcomes) = answer else { continue };
        for outcome in outcomes {
            if let FollowUpOutcome::Refused { id, cause } = outcome {
                tracing::warn!(topic = %parts.key.topic, %target, job.id = %id, cause, "the target refuses a follow-up for good: it is passed over");
                parts.stats.refused_follow_up(RefusedJob::new(&target, &id, cause, parts.environment.wall()));
            }
        }
    }
    (arrived, Ok(()))
}

/// Whether a target has refused an entry because one before it has not arrived. That is sent again first.
fn is_too_early(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused { reason, .. } if reason == OUT_OF_ORDER)
}

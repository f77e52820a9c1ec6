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

use super::unread::Unread;
use super::{Parts, StopOrder};
use crate::context::timer::Timer;
use crate::environment::Environment;
use crate::job::{TopicKey, TopicName};
use crate::provider::RefusedJob;
use crate::store::in_call_timeout;
use crate::store::{
    Ahead, BatchAnswer, FollowUpOutcome, MAX_ENTRIES, OutboxEntry, OutboxPosition, Producer, Relay as Request, Relayed,
    Repair, StoreError, Waits, relay_of,
};

/// For how long the store gives no entries to others.
const LEASE: Duration = Duration::from_secs(5);
/// How many entries a round has at most, so that one ends within the lease.
const ROUND: usize = 256;
const _: () = assert!(ROUND <= MAX_ENTRIES);
/// How many bytes of entries a round has, about.
const ROUND_BYTES: usize = 1 << 20;
/// How long a target rests at first that takes no entries, and at most. A try costs one entry, so that it may come soon.
const FIRST_REST: Duration = Duration::from_millis(250);
const MAX_REST: Duration = Duration::from_secs(1);
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
    unread: Unread,
    /// How many rounds in a row the store did not answer.
    failures: u32,
}

/// A target, as this relay knows it.
struct Target {
    producer: Arc<dyn Producer>,
    /// Until when it rests, because it takes nothing now, and how often in a row.
    rests: Option<Duration>,
    failures: u32,
    waits: Option<Waits>,
    /// The first entry, which it has refused because one before it has not arrived. If that is not in the outbox either, a failover of the
    /// target's server took back what had arrived.
    early: Option<u64>,
}

impl Relay {
    pub(crate) fn new(parts: Arc<Parts>) -> Self {
        let (targets, arrived, unread) = (BTreeMap::new(), BTreeMap::new(), Unread::default());
        Self { parts, targets, arrived, unread, failures: 0 }
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
            unread: self.unread.names(),
            without,
            limit: ROUND,
            bytes: ROUND_BYTES,
        };
        let asked = self.parts.store.relay(&self.parts.key, &request);
        let answer = in_call_timeout(self.environment(), self.parts.node.call_timeout, "relay", asked).await;
        let Relayed { busy, entries, ahead, waiting, skipped } = match answer {
            Ok(relayed) => relayed,
            Err(error) => {
                tracing::debug!(topic = %self.parts.key.topic, %error, "cannot relay follow-ups; dq tries again");
                let pause = self.environment().growing_pause(FIRST_REST, MAX_REST, self.failures, 2);
                self.failures = self.failures.saturating_add(1);
                return ControlFlow::Break(Some(now + pause));
            }
        };
        self.failures = 0;
        if let Some(busy) = busy {
            return ControlFlow::Break(Some(now + busy + Duration::from_millis(1)));
        }
        for (name, _) in std::mem::take(&mut self.arrived) {
            let is_ahead = ahead.iter().any(|ahead| ahead.target == name);
            if let Some(target) = self.targets.get_mut(&name).filter(|_| !is_ahead) {
                target.failures = 0;
            }
        }
        self.parts.stats.follow_ups.set(waiting);
        if let Some(begins) = skipped {
            self.unread.skipped(&self.parts, &begins);
        }
        let mut set_back = false;
        for ahead in ahead {
            set_back |= self.set_back(ahead, now).await;
        }
        if entries.is_empty() && !set_back {
            let rests = self.targets.values().filter_map(|target| target.rests);
            return ControlFlow::Break(rests.filter(|until| now < *until).min());
        }
        let entries = self.unread.pass_over(&self.parts, entries);
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
        let sent = of_targets.into_iter().filter_map(|(target, mut entries)| {
            let (parts, known) = (Arc::clone(&self.parts), self.target(&target));
            let (producer, first) = (Arc::clone(&known.producer), entries.first_mut()?);
            if known.early == Some(first.position.at) {
                tracing::warn!(topic = %parts.key.topic, %target, "the topic has lost follow-ups that had arrived, in a failover: later ones follow without them");
                first.after = OutboxPosition::START;
            }
            let first = first.position.at;
            if known.failures > 0 {
                // Whether it takes entries again, the first one shows.
                entries.truncate(1);
            }
            Some(async move {
                (target, send_all(&parts, &*producer, first, entries).await)
            })
        });
        let sent: Vec<_> = sent.collect();
        let now = self.environment().now();
        for (target, sent) in join_all(sent).await {
            self.after(&target, &sent, now);
            self.arrived.extend(sent.arrived.map(|position| (target, position)));
        }
    }

    /// Sets back a target that has a position at which the outbox has no entry: it may answer what waits for it as late. Returns whether it has been
    /// set back.
    async fn set_back(&mut self, ahead: Ahead, now: Duration) -> bool {
        let Ahead { target, position, back_to, is_far } = ahead;
        let (source, environment) = (self.parts.key.topic.clone(), self.environment().clone());
        if is_far {
            self.rest(&target, now);
            if let Some(since) = Waits::to_say(&mut self.target(&target).waits, &environment) {
                tracing::error!(topic = %source, %target, %since, position = position.at, "the topic `target` has a position of follow-ups that is more than a day ahead of the store's clock: they wait. Find out who wrote it, and run `dq doctor --repair`");
            }
            return false;
        }
        let key = TopicKey { app: self.parts.key.app.clone(), topic: target.clone() };
        let repair = Repair::SetBack { source: source.clone(), from: position, to: back_to };
        let answer = self.parts.store.repair(&key, &repair);
        let is_set_back = match in_call_timeout(&environment, self.parts.node.call_timeout, "repair", answer).await {
            // False: it has another position by now.
            Ok(is_set_back) => is_set_back,
            Err(error) => {
                tracing::debug!(topic = %source, %target, %error, "cannot set the position of a target back; dq tries again");
                false
            }
        };
        match is_set_back {
            true => {
                tracing::warn!(topic = %source, %target, %position, %back_to, "the topic `target` has a position of follow-ups that this topic does not know, after a failover or an import: what waits for it is sent again, and some of it may arrive twice");
            }
            false => self.rest(&target, now),
        }
        is_set_back
    }

    /// A target rests, and is then tried with one entry.
    fn rest(&mut self, name: &TopicName, now: Duration) {
        let environment = self.environment().clone();
        let target = self.target(name);
        let pause = environment.growing_pause(FIRST_REST, MAX_REST, target.failures, 2);
        (target.rests, target.failures) = (Some(now + pause), target.failures.saturating_add(1));
    }

    fn target(&mut self, name: &TopicName) -> &mut Target {
        let (store, key) = (&self.parts.store, &self.parts.key);
        self.targets.entry(name.clone()).or_insert_with(|| {
            let target = TopicKey { app: key.app.clone(), topic: name.clone() };
            let producer = store.producer(&target, &relay_of(&key.topic));
            Target { producer, rests: None, failures: 0, waits: None, early: None }
        })
    }

    /// A target has taken its entries, or rests after an error.
    fn after(&mut self, name: &TopicName, sent: &Sent, now: Duration) {
        let (environment, topic) = (self.environment().clone(), self.parts.key.topic.clone());
        let target = self.target(name);
        if sent.arrived.is_some() {
            (target.rests, target.early) = (None, None);
        }
        let is_first_early = sent.arrived.is_none() && target.early != Some(sent.first);
        let error = match &sent.error {
            // What was sent behind an entry that the target had to be asked twice. Or a failover took back the one before the first.
            Some(error) if error.is_out_of_order() && (sent.arrived.is_some() || is_first_early) => {
                target.early = sent.arrived.is_none().then_some(sent.first);
                None
            }
            error => error.as_ref(),
        };
        let Some(error) = error else {
            let has_waited = sent.is_new.then(|| Waits::over(&mut target.waits)).flatten();
            if let Some(since) = has_waited {
                tracing::info!(%topic, target = %name, %since, "the topic takes follow-ups again");
            }
            return;
        };
        if let Some(since) = Waits::to_say(&mut target.waits, &environment) {
            tracing::warn!(%topic, target = %name, %since, %error, "the follow-ups for this topic wait; dq tries again");
        }
        let (failures, waits) = (target.failures, target.waits);
        if error.ends_connection() || !error.nothing_done() {
            // The producer may be broken for good.
            self.targets.remove(name);
        }
        let target = self.target(name);
        (target.failures, target.waits, target.early) = (failures, waits, None);
        self.rest(name, now);
    }
}

/// What became of the entries that a target was sent.
struct Sent {
    /// The place of the first of them.
    first: u64,
    /// That of the last one which was answered.
    arrived: Option<u64>,
    /// Whether the target has executed one of them, and not only answered late.
    is_new: bool,
    /// Why the next one was not.
    error: Option<StoreError>,
}

/// Sends the entries of one target without waiting for the answers in between: one that comes too early is refused, because it names the
/// one before it.
async fn send_all(parts: &Parts, producer: &dyn Producer, first: u64, entries: Vec<OutboxEntry>) -> Sent {
    let send = |entry: OutboxEntry| (entry.target.clone(), entry.position, producer.relay(entry));
    let answers: Vec<_> = entries.into_iter().map(send).collect();
    let mut sent = Sent { first, arrived: None, is_new: false, error: None };
    for (target, position, answer) in answers {
        let answer = match in_call_timeout(&parts.environment, parts.node.call_timeout, "relay", answer).await {
            Ok(answer) => answer,
            Err(error) => {
                sent.error = Some(error);
                break;
            }
        };
        // The store removes it, unless the target is ahead.
        sent.arrived = Some(position.at);
        let BatchAnswer::Done(outcomes) = answer else { continue };
        sent.is_new = true;
        let micros = parts.environment.wall().as_millis().saturating_mul(1_000);
        parts.stats.relayed(micros.saturating_sub(position.written));
        for outcome in outcomes {
            if let FollowUpOutcome::Refused { id, cause } = outcome {
                tracing::warn!(topic = %parts.key.topic, %target, job.id = %id, cause, "the target refuses a follow-up for good: it is passed over");
                parts.stats.refused_follow_up(RefusedJob::new(&target, &id, cause, parts.environment.wall()));
            }
        }
    }
    sent
}

//! The store as one process sees it: the memory store behind a wire that fails.

use std::future::ready;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::altered::now;
use super::checker::{Checker, Did};
use super::network::Connection;
use super::network_state::Subscriber;
use super::process::Process;
use super::producer::FaultyProducer;
use super::rules::without;
use super::sim::Sim;
use super::sync::lock;
use dq::config::NodeSettings;
use dq::job::{AppName, JobId, NodeId, ProducerId, Sequence, Token, TopicKey, TopicName};
use dq::store::step::{
    Exhaust, Isolate, LeaseStatus, Noted, Publish, Published, Reclaim, Reclaimed, Reconcile, Reconciled, Release,
    Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred, Wake,
};
use dq::store::{
    Interest, Link, Page, PageRequest, Pending, Producer, Signals, Store, StoreError, Stored, TopicCounts,
};
use dq::time::Timestamp;

/// The most rows of one step, so that runs meet pages and bounded steps.
const FEW: usize = 3;

/// The memory store behind the wires of one process.
#[derive(Debug)]
pub(super) struct FaultyStore {
    pub(super) sim: Arc<Sim>,
    pub(super) process: Arc<Process>,
}

impl Store for FaultyStore {
    fn url(&self) -> String {
        "memory:simulated".into()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.sim.store.open(topic)
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let inner = self.sim.link(topic, node);
        self.sim.cluster.log(|| format!("{} connects as {node}", self.process.name));
        let checker = self.sim.checker_of(topic);
        lock(&checker).node_records.entry(node.clone()).or_default().settled = None;
        Arc::new(FaultyLink {
            connection: Connection::new(&self.sim, &self.process),
            inner,
            node: node.clone(),
            key: topic.clone(),
            made: self.sim.cluster.now(),
            checker,
        })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let inner = self.sim.store.producer(topic, producer);
        let (key, checker) = (topic.clone(), self.sim.checker_of(topic));
        Arc::new(FaultyProducer {
            connection: Connection::new(&self.sim, &self.process),
            inner,
            id: producer.clone(),
            key,
            checker,
        })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        if self.sim.cluster.now() < self.sim.network_state().out_until || self.process.is_mute() {
            let error = StoreError::Unavailable { operation: "signals", reason: "an outage".into() };
            return Box::pin(ready(Err(error)));
        }
        let broadcasts = interest.broadcasts;
        let inner = self.sim.store.signals(topic, interest).now_or_never();
        let (outer, signals) = Signals::channel();
        if let Some(Ok(inner)) = inner {
            let subscriber = Subscriber {
                process: Arc::clone(&self.process),
                inner: Mutex::new(inner),
                outer,
                last: AtomicU64::new(self.sim.cluster.now()),
                broadcasts,
            };
            self.sim.listen(subscriber);
        }
        Box::pin(ready(Ok(signals)))
    }

    fn get<'a>(
        &'a self,
        topic: &'a TopicKey,
        ids: &'a [JobId],
    ) -> BoxFuture<'a, Result<Vec<Option<Stored>>, StoreError>> {
        self.sim.store.get(topic, ids)
    }

    fn page<'a>(&'a self, topic: &'a TopicKey, request: PageRequest) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.sim.store.page(topic, request)
    }

    fn topics<'a>(&'a self, app: &'a AppName) -> BoxFuture<'a, Result<Vec<TopicName>, StoreError>> {
        self.sim.store.topics(app)
    }

    fn counts<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<TopicCounts, StoreError>> {
        self.sim.store.counts(topic)
    }
}

#[derive(Debug)]
struct FaultyLink {
    connection: Connection,
    inner: Arc<dyn Link>,
    node: NodeId,
    key: TopicKey,
    made: u64,
    checker: Arc<Mutex<Checker>>,
}

impl FaultyLink {
    /// The lease end that a reclaim names; without rule 20, whatever end there is.
    fn seen(&self, request: &Reclaim) -> Timestamp {
        let lease = if without(20) { lock(&self.checker).lease_of(&request.node) } else { None };
        lease.unwrap_or(request.seen)
    }

    /// Sends a step. When the store has executed it, the checker learns `what` it did.
    fn step<T: std::fmt::Debug + Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Sim, &dyn Link, &NodeId) -> Result<T, StoreError> + Send + 'static,
        what: impl FnOnce(&T, &NodeId) -> Did + Send + 'static,
        received: impl FnOnce(&Sim, &mut Checker, &T, &NodeId) + Send + 'static,
    ) -> Pending<T> {
        let (inner, node, listener) = (Arc::clone(&self.inner), self.node.clone(), self.node.clone());
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let execute = move |sim: &Sim| {
            let answer = step(sim, &*inner, &node)?;
            sim.cluster.log(|| format!("{name} {kind} -> {answer:?}"));
            sim.check(&key, what(&answer, &node));
            Ok(answer)
        };
        self.connection.ask(kind, execute, move |sim, answer| received(sim, &mut lock(&checker), answer, &listener))
    }

    /// The sequence number that a request names: its own, or without rule 6 whatever the store has.
    fn last_seen(inner: &dyn Link, last_seen: Sequence) -> Sequence {
        if !without(6) {
            return last_seen;
        }
        // A later page takes no sequence number, and its answer has the current one.
        let page = Reconcile { last_seen, after: JobId::new("~").ok(), limit: 1 };
        match now(inner.reconcile(page)) {
            Ok(Sequenced::Done(page)) => page.lease_status.sequence,
            Ok(Sequenced::Reconcile(lease_status)) => lease_status.sequence,
            Err(_) => last_seen,
        }
    }
}

fn noted(id: JobId, node: &NodeId, token: Token, (isolates, answer): (bool, &Noted)) -> Did {
    if without(15) && !isolates {
        return Did::Nothing;
    }
    Did::Note { id, node: node.clone(), token, isolates, note: answer.note }
}

const fn nothing<T>(_: &Sim, _: &mut Checker, _: &T, _: &NodeId) {}

impl Link for FaultyLink {
    fn transfer(&self, mut request: Transfer) -> Pending<Sequenced<Transferred>> {
        self.connection.sim.cluster.log(|| format!("{} sends {request:?}", self.connection.process.name));
        let step = move |sim: &Sim, inner: &dyn Link, _: &NodeId| {
            request.last_seen = Self::last_seen(inner, request.last_seen);
            let mut answer = now(inner.transfer(request))?;
            if let Sequenced::Done(done) = &mut answer
                && done.foreign_lease.as_ref().is_some_and(|(node, _)| sim.is_hidden(node))
            {
                done.foreign_lease = None;
            }
            Ok(answer)
        };
        let what = |answer: &Sequenced<Transferred>, node: &NodeId| match answer {
            Sequenced::Done(done) => Did::Claim { node: node.clone(), claims: done.claims.clone(), aged: false },
            Sequenced::Reconcile(_) => Did::Nothing,
        };
        self.step("transfer", step, what, |_, checker, answer, node| {
            if let Sequenced::Done(done) = answer {
                checker.claims_received(node, &done.claims);
            }
        })
    }

    fn settle(&self, request: Settle) -> Pending<Settled> {
        let asked = request.outcomes.clone();
        self.connection.sim.cluster.log(|| format!("{} sends {request:?}", self.connection.process.name));
        let step = move |sim: &Sim, inner: &dyn Link, node: &NodeId| {
            let mut request = request;
            request.last_seen = Self::last_seen(inner, request.last_seen);
            if without(10) {
                for outcome in &mut request.outcomes {
                    outcome.token = sim.checker().token_of(node, &outcome.id).unwrap_or(outcome.token);
                }
            }
            now(inner.settle(request))
        };
        let what = |answer: &Settled, node: &NodeId| Did::Settle {
            node: node.clone(),
            outcomes: asked.into_iter().zip(answer.verdicts.iter().cloned()).collect(),
        };
        self.step("settle", step, what, nothing)
    }

    fn renew(&self, request: Renew) -> Pending<LeaseStatus> {
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| {
            now(inner.renew(Renew { last_seen: Self::last_seen(inner, request.last_seen), ..request }))
        };
        self.step("renew", step, |_, _| Did::Nothing, nothing)
    }

    fn isolate(&self, request: Isolate) -> Pending<Noted> {
        let (id, token) = (request.id.clone(), request.token);
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.isolate(request));
        self.step("isolate", step, move |answer, node| noted(id, node, token, (true, answer)), nothing)
    }

    fn exhaust(&self, request: Exhaust) -> Pending<Noted> {
        let (id, token) = (request.id.clone(), request.token);
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.exhaust(request));
        self.step("exhaust", step, move |answer, node| noted(id, node, token, (false, answer)), nothing)
    }

    fn reconcile(&self, request: Reconcile) -> Pending<Sequenced<Reconciled>> {
        let request = Reconcile { limit: request.limit.min(FEW), ..request };
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| {
            let answer = now(inner.reconcile(request))?;
            if let Sequenced::Done(page) = &answer
                && without(6)
            {
                now(inner.renew(Renew { last_seen: page.lease_status.sequence, lease: NodeSettings::default().lease }))?;
            }
            Ok(answer)
        };
        self.step(
            "reconcile",
            step,
            |_, _| Did::Nothing,
            |sim, checker, answer, node| {
                if matches!(answer, Sequenced::Done(page) if page.next.is_none()) {
                    checker.reconciled(node, sim.cluster.now());
                }
            },
        )
    }

    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed> {
        let request = Reclaim { limit: request.limit.min(FEW), seen: self.seen(&request), ..request };
        let (from, reclaims) = (request.node.clone(), request.clone());
        let step = move |sim: &Sim, inner: &dyn Link, _: &NodeId| {
            let mut request = reclaims;
            if sim.is_hidden(&request.node) {
                return Ok(Reclaimed::default());
            }
            if without(20) {
                request.seen = sim.checker().lease_of(&request.node).unwrap_or(request.seen);
            }
            let answer = now(inner.reclaim(request.clone()))?;
            if without(8) && answer.moved > 0 && answer.left > 0 {
                sim.hide(&request.node);
            }
            if without(2) && answer.moved > 0 {
                sim.split_reclaim(&request.node);
            }
            Ok(answer)
        };
        let seen = request.seen;
        let watched = self.connection.sim.cluster.now() - self.made;
        let what = move |answer: &Reclaimed, _: &NodeId| match answer.moved {
            0 => Did::Nothing,
            _ => Did::Reclaim { from, seen, watched, charged: seen != Timestamp::EPOCH },
        };
        self.step("reclaim", step, what, nothing)
    }

    fn release(&self, request: Release) -> Pending<LeaseStatus> {
        let step = move |sim: &Sim, inner: &dyn Link, node: &NodeId| {
            let lease_status = now(inner.release(request))?;
            if without(8) && lease_status.rows > 0 {
                sim.hide(node);
            }
            Ok(lease_status)
        };
        self.step("release", step, |_, node| Did::Release { node: node.clone() }, nothing)
    }

    fn sweep(&self, request: Sweep) -> Pending<Sequenced<Swept>> {
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.sweep(request));
        let what = |answer: &Sequenced<Swept>, node: &NodeId| match answer {
            Sequenced::Done(done) => Did::Claim { node: node.clone(), claims: done.claims.clone(), aged: true },
            Sequenced::Reconcile(_) => Did::Nothing,
        };
        self.step("sweep", step, what, |_, checker, answer, node| {
            if let Sequenced::Done(done) = answer {
                checker.claims_received(node, &done.claims);
            }
        })
    }

    fn publish(&self, request: Publish) -> Pending<Published> {
        let request = Publish { limit: request.limit.min(FEW), ..request };
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.publish(request));
        let what = move |published: &Published, _: &NodeId| Did::Publish {
            published: *published,
            expires_after: request.expires_after,
        };
        self.step("publish", step, what, nothing)
    }

    fn wake(&self, request: Wake) -> Pending<()> {
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.wake(request));
        self.step("wake", step, |(), _| Did::Nothing, nothing)
    }

    fn scan(&self, request: Scan) -> Pending<Scanned> {
        let step = move |sim: &Sim, inner: &dyn Link, _: &NodeId| {
            let mut answer = now(inner.scan(request))?;
            answer.leases.retain(|(node, _)| !sim.is_hidden(node));
            Ok(answer)
        };
        self.step("scan", step, |_, _| Did::Nothing, nothing)
    }
}

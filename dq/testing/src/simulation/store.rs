//! The store as one process sees it: the memory store behind a wire that fails.

use std::future::ready;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::altered::answer_of;
use super::checker::{Checker, Did};
use super::network::Connection;
use super::network_state::Subscriber;
use super::process::Process;
use super::producer::FaultyProducer;
use super::rules::{is_any_away, without};
use super::sim::Sim;
use super::sync::lock;
use super::version::stamp_tick;
use dq::config::NodeSettings;
use dq::job::{Cause, JobId, Metadata, NodeId, ProducerId, Sequence, TopicKey};
use dq::schedule::schedule_name;
use dq::store::step::{
    Change, Claim, Exhaust, Isolate, Isolated, Note, NoteVerdict, Noting, Outcome, Reclaimed, Reconcile, Renew,
    RowCursor, Sequenced, Settle,
};
use dq::store::{
    Answer, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Request, RequestKind, Signals, Store,
    StoreError, TopicState,
};
use dq::time::Timestamp;

/// The most rows of one step, so that runs meet pages and bounded steps.
const FEW: usize = 3;

/// About how many bytes of an answer are a row without its record.
const ROW: usize = 64;

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

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(async move {
            match self.sim.set_back(&query) {
                Some(reply) => Ok(reply),
                None => self.sim.store().ask(query).await,
            }
        })
    }

    /// No simulated topic counts.
    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        let inner = self.sim.link(topic, node, options);
        self.sim.cluster.log(|| format!("{} connects as {node}", self.process.name));
        let checker = self.sim.checker_of(topic);
        {
            let mut checker = lock(&checker);
            checker.has_ageing = !self.sim.workload.is_program();
            checker.node_records.entry(node.clone()).or_default().settled = None;
        }
        Arc::new(FaultyLink {
            connection: Connection::new(&self.sim, &self.process),
            prompt: Connection::new(&self.sim, &self.process),
            inner,
            node: node.clone(),
            key: topic.clone(),
            made: self.sim.cluster.now(),
            checker,
        })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let inner = self.sim.producer(topic, producer);
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
        if self.sim.cluster.now() < self.sim.network_state().outage_until || self.process.is_mute() {
            let error = StoreError::Unavailable { operation: "signals", reason: "an outage".into() };
            return Box::pin(ready(Err(error)));
        }
        let refuses = self.sim.cluster.now() < self.sim.network_state().unsubscribed_until;
        if refuses {
            self.process.unsubscribed.store(true, Relaxed);
            let error = StoreError::Refused { operation: "signals", reason: "BUSY".into() };
            return Box::pin(ready(Err(error)));
        }
        let (broadcasts, wanted) = (interest.broadcasts, interest.clone());
        // Without `resubscribe` nothing comes over a connection that refused a subscription once.
        let hears_nothing = without("resubscribe") && self.process.unsubscribed.load(Relaxed);
        let inner = if hears_nothing {
            Some(Ok(Signals::channel(&interest).1))
        } else {
            self.sim.store().signals(topic, interest).now_or_never()
        };
        let (outer, signals) = Signals::channel(&wanted);
        if let Some(Ok(inner)) = inner {
            let subscriber = Subscriber {
                process: Arc::clone(&self.process),
                inner: Mutex::new(inner),
                outer,
                last: AtomicU64::new(self.sim.cluster.now()),
                topic: topic.clone(),
                broadcasts,
            };
            self.sim.listen(subscriber);
        }
        Box::pin(ready(Ok(signals)))
    }
}

#[derive(Debug)]
struct FaultyLink {
    connection: Connection,
    /// For what payloads must not delay.
    prompt: Connection,
    inner: Arc<dyn Link>,
    node: NodeId,
    key: TopicKey,
    made: u64,
    checker: Arc<Mutex<Checker>>,
}

impl Link for FaultyLink {
    /// Sends a request. When the store executes it, the checker learns what it did.
    fn ask(&self, request: Request) -> Pending<Answer> {
        let (name, key, checker) = (self.connection.process.name.clone(), self.key.clone(), Arc::clone(&self.checker));
        let (inner, node, receiver) = (Arc::clone(&self.inner), self.node.clone(), self.node.clone());
        let (kind, request) = (request.kind(), self.altered(request));
        if matches!(kind, RequestKind::Transfer | RequestKind::Settle) {
            self.connection.sim.cluster.log(|| format!("{name} sends {request:?}"));
        }
        let watched = self.connection.sim.cluster.now() - self.made;
        let execute = move |sim: &Arc<Sim>| {
            let before = match &request {
                Request::Settle(settle) => sim.waiting_follow_ups(&key, settle),
                _ => None,
            };
            let answer = execute(sim, &*inner, (&key, &node), request.clone())?;
            if let (Some(before), Request::Settle(settle), Answer::Settle(settled)) = (before, &request, &answer) {
                sim.note_follow_ups(&key, before, settle, settled);
            }
            sim.cluster.log(|| format!("{name} {} -> {answer:?}", kind.name()));
            sim.check(&key, what_it_did(request, &answer, &node, watched));
            Ok(answer)
        };
        let received = move |sim: &Sim, answer: &Answer| receive(sim, &mut lock(&checker), answer, &receiver);
        let connection = self.connection_of(kind);
        if !connection.connects() {
            return connection.refused(kind.name());
        }
        connection.ask(kind.name(), size_of_answer, execute, received)
    }

    /// Without `bytes` an answer that is still arriving looks late.
    fn silent_for(&self, kind: RequestKind) -> Option<Duration> {
        (!without("bytes")).then(|| self.connection_of(kind).silent_for())
    }
}

impl FaultyLink {
    /// The connection of the requests of this kind.
    fn connection_of(&self, kind: RequestKind) -> &Connection {
        if matches!(kind, RequestKind::Renew | RequestKind::Publish) { &self.prompt } else { &self.connection }
    }

    /// The request with a limit so low that pages and rounds come often. Without rule 20 a reclaim names whatever lease end
    /// there is.
    fn altered(&self, mut request: Request) -> Request {
        match &mut request {
            Request::Reconcile(reconcile) => reconcile.limit = reconcile.limit.min(FEW),
            Request::Publish(publish) => publish.limit = publish.limit.min(FEW),
            Request::Settle(settle) if !self.connection.sim.workload.is_program() => {
                for outcome in &mut settle.outcomes {
                    if let Change::Tick(tick) = &mut outcome.change {
                        stamp_tick(tick);
                    }
                }
                self.convict_at_once(&mut settle.outcomes);
            }
            Request::Reclaim(reclaim) => {
                reclaim.limit = reclaim.limit.min(FEW);
                let lease = if without("20") { lock(&self.checker).lease_of(&reclaim.node) } else { None };
                reclaim.seen = lease.unwrap_or(reclaim.seen);
            }
            _ => {}
        }
        request
    }

    /// Without rule 34 the first panic of a node convicts each job whose outcome it sends next.
    fn convict_at_once(&self, outcomes: &mut [Outcome]) {
        if !without("34") || lock(&self.checker).panics_of(&self.node) != 1 {
            return;
        }
        for outcome in outcomes.iter_mut().filter(|outcome| schedule_name(&outcome.id).is_none()) {
            outcome.change = Change::Dead;
            outcome.metadata = Some(Metadata { cause: Some(Cause::Defect), ..Metadata::default() });
        }
    }
}

/// Executes a request on the store, without the rule that is taken away.
fn execute(
    sim: &Arc<Sim>,
    inner: &dyn Link,
    (key, node): (&TopicKey, &NodeId),
    mut request: Request,
) -> Result<Answer, StoreError> {
    match &mut request {
        Request::Transfer(transfer) => transfer.last_seen = last_seen(inner, transfer.last_seen),
        Request::Renew(renew) => renew.last_seen = last_seen(inner, renew.last_seen),
        Request::Settle(settle) => {
            settle.last_seen = last_seen(inner, settle.last_seen);
            if without("10") {
                let checker = sim.checker_of(key);
                for outcome in &mut settle.outcomes {
                    outcome.token = lock(&checker).token_of(node, &outcome.id).unwrap_or(outcome.token);
                }
            }
        }
        Request::Reclaim(reclaim) if sim.is_hidden(key, &reclaim.node) => {
            return Ok(Answer::Reclaim(Reclaimed::default()));
        }
        Request::Reclaim(reclaim) if without("20") => {
            reclaim.seen = lock(&sim.checker_of(key)).lease_of(&reclaim.node).unwrap_or(reclaim.seen);
        }
        _ => {}
    }
    let from = if let Request::Reclaim(reclaim) = &request { Some(reclaim.node.clone()) } else { None };
    let outcomes = match &mut request {
        Request::Settle(settle) if is_any_away() => {
            let asked = settle.outcomes.clone();
            sim.alter_ticks(key, &mut settle.outcomes);
            asked
        }
        _ => Vec::new(),
    };
    let close = sim.open_for(key, request.kind());
    let answer = answer_of(inner.ask(request));
    if let Some(close) = close {
        sim.set_unnoticed(key, close);
    }
    let mut answer = answer?;
    match &mut answer {
        Answer::Transfer(Sequenced::Done(done)) => {
            if without("passed")
                && let Some(state) = &mut done.state
            {
                state.pause.take_if(|pause| pause.by == "nobody");
            }
            done.state.take_if(|state| **state == TopicState::default());
            done.foreign_lease.take_if(|(node, _)| sim.is_hidden(key, node));
        }
        Answer::Settle(settled) => sim.tick_anyhow(key, &outcomes, settled),
        Answer::Reconcile(Sequenced::Done(page)) if without("6") => {
            answer_of(
                inner.step(Renew { last_seen: page.lease_status.sequence, lease: NodeSettings::default().lease }),
            )?;
        }
        Answer::Reclaim(Reclaimed { moved: 1.., left }) => {
            let from = from.expect("only a reclaim is answered so");
            if without("8") && *left > 0 {
                sim.hide(key, &from);
            }
            if without("2") {
                sim.split_reclaim(key, &from);
            }
        }
        Answer::Release(lease_status) if without("8") && lease_status.rows > 0 => sim.hide(key, node),
        Answer::Scan(scanned) => scanned.leases.retain(|(node, _)| !sim.is_hidden(key, node)),
        _ => {}
    }
    Ok(answer)
}

/// The sequence number that a request names: its own; without rule 6 whatever the store has.
fn last_seen(inner: &dyn Link, last_seen: Sequence) -> Sequence {
    if !without("6") {
        return last_seen;
    }
    // A later page takes no sequence number and reports the one there is.
    let page = Reconcile { last_seen, after: JobId::new("~").ok().as_ref().map(RowCursor::behind), limit: 1 };
    match answer_of(inner.step(page)) {
        Ok(Sequenced::Done(page)) => page.lease_status.sequence,
        Ok(Sequenced::Reconcile(lease_status)) => lease_status.sequence,
        Err(_) => last_seen,
    }
}

/// What a step did, for the checker. `watched` is how long the link had been there when it was sent.
fn what_it_did(request: Request, answer: &Answer, node: &NodeId, watched: u64) -> Did {
    let node = node.clone();
    match (request, answer) {
        (_, Answer::Transfer(Sequenced::Done(done))) => Did::Claim { node, claims: done.claims.clone(), aged: false },
        (_, Answer::Sweep(Sequenced::Done(done))) => Did::Claim { node, claims: done.claims.clone(), aged: true },
        (Request::Settle(Settle { outcomes, .. }), Answer::Settle(settled)) => {
            Did::Settle { node, outcomes: outcomes.into_iter().zip(settled.verdicts.iter().cloned()).collect() }
        }
        (Request::Isolate(Isolate { isolation: None, .. }), _) => Did::Nothing,
        (Request::Isolate(Isolate { runs, isolation, .. }), Answer::Isolate(Isolated { notes: Some(notes), .. })) => {
            let runs = runs.into_iter().zip(notes).map(|((id, token), note)| (id, token, *note)).collect();
            Did::Note { node, runs, isolation, state: None }
        }
        (Request::Exhaust(_), Answer::Exhaust(_)) if without("15") => Did::Nothing,
        (Request::Exhaust(Exhaust { id, token, metadata, .. }), Answer::Exhaust(answer)) => {
            Did::Note { node, runs: vec![(id, token, answer.note)], isolation: None, state: metadata.state }
        }
        (Request::Note(Note { id, token, number, what: Noting::State(metadata), .. }), Answer::Note(answer))
            if answer.note == NoteVerdict::Done =>
        {
            Did::Keep { id, token, number, state: metadata.state }
        }
        (Request::Reclaim(request), Answer::Reclaim(Reclaimed { moved: 1.., .. })) => {
            let charged = request.seen != Timestamp::EPOCH;
            Did::Reclaim { from: request.node, seen: request.seen, watched, charged }
        }
        (Request::Publish(request), Answer::Publish(_)) => Did::Publish { expires_after: request.expires_after },
        _ => Did::Nothing,
    }
}

/// About how many bytes an answer has on its wire.
fn size_of_answer(answer: &Answer) -> usize {
    let of_claims = |claims: &[Claim]| claims.iter().map(|claim| ROW + claim.record.as_bytes().len()).sum();
    match answer {
        Answer::Transfer(Sequenced::Done(done)) => of_claims(&done.claims),
        Answer::Sweep(Sequenced::Done(done)) => of_claims(&done.claims),
        Answer::Reconcile(Sequenced::Done(page)) => ROW * page.rows.len(),
        _ => ROW,
    }
}

/// What the checker learns when a node receives an answer.
fn receive(sim: &Sim, checker: &mut Checker, answer: &Answer, node: &NodeId) {
    match answer {
        Answer::Transfer(Sequenced::Done(done)) => checker.claims_received(node, &done.claims),
        Answer::Sweep(Sequenced::Done(done)) => checker.claims_received(node, &done.claims),
        Answer::Reconcile(Sequenced::Done(page)) if page.next.is_none() => {
            checker.reconciled(node, sim.cluster.now());
        }
        _ => {}
    }
}

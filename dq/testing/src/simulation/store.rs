//! The store as one process sees it: the memory store behind a wire that fails.

use std::future::ready;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::judge::{Court, Did};
use super::network::Way;
use super::process::Process;
use super::producer::FaultyProducer;
use super::sim::Sim;
use super::world::lock;
use dq::config::NodeSettings;
use dq::job::{AppName, JobId, NodeId, ProducerId, Token, TopicKey, TopicName, Turn};
use dq::store::step::{
    Age, Aged, Begin, Cast, Casted, Exhaust, Hold, Noted, Reclaim, Reclaimed, Reconcile, Reconciled, Release, Scan,
    Scanned, Settle, Settled, Standing, Transfer, Transferred, Turned, Wake,
};
use dq::store::{
    Interest, Link, Page, PageRequest, Pending, Producer, Signal, Signals, Store, StoreError, Stored, TopicCounts,
};
use dq::testing::seam::without;

/// The most rows of one step, so that pages and bounded steps are met.
const FEW: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct FaultyStore {
    pub(super) sim: Arc<Sim>,
    pub(super) process: Arc<Process>,
}

/// A subscription of a process.
#[derive(Debug)]
pub(super) struct Ear {
    pub(super) process: Arc<Process>,
    pub(super) inner: Mutex<Signals>,
    pub(super) outer: mpsc::Sender<Signal>,
    pub(super) last: AtomicU64,
    /// It hears broadcasts.
    pub(super) casts: bool,
}

/// The answer of a step of the memory store is there when the step was called.
pub(super) fn now<T>(answer: Pending<T>) -> Result<T, StoreError> {
    answer.now_or_never().expect("the memory store answers at once")
}

impl Store for FaultyStore {
    fn url(&self) -> String {
        "memory:simulated".into()
    }

    fn open<'a>(&'a self, topic: &'a TopicKey) -> BoxFuture<'a, Result<(), StoreError>> {
        self.sim.store.open(topic)
    }

    fn link(&self, topic: &TopicKey, node: &NodeId) -> Arc<dyn Link> {
        let inner = self.sim.store.link(topic, node);
        self.sim.world.say(|| format!("{} connects as {node}", self.process.name));
        let court = self.sim.court_of(topic);
        lock(&court).conduct.entry(node.clone()).or_default().settled = None;
        Arc::new(FaultyLink {
            way: Way::new(&self.sim, &self.process),
            inner,
            node: node.clone(),
            key: topic.clone(),
            made: self.sim.world.now(),
            court,
        })
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        let inner = self.sim.store.producer(topic, producer);
        let (key, court) = (topic.clone(), self.sim.court_of(topic));
        Arc::new(FaultyProducer { way: Way::new(&self.sim, &self.process), inner, id: producer.clone(), key, court })
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        if self.sim.world.now() < self.sim.weather().out_until || self.process.is_mute() {
            let error = StoreError::Unavailable { operation: "signals", reason: "an outage".into() };
            return Box::pin(ready(Err(error)));
        }
        let casts = interest.casts;
        let inner = self.sim.store.signals(topic, interest).now_or_never();
        let (outer, signals) = Signals::channel();
        if let Some(Ok(inner)) = inner {
            let ear = Ear {
                process: Arc::clone(&self.process),
                inner: Mutex::new(inner),
                outer,
                last: AtomicU64::new(self.sim.world.now()),
                casts,
            };
            self.sim.listen(ear);
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
    way: Way,
    inner: Arc<dyn Link>,
    node: NodeId,
    key: TopicKey,
    made: u64,
    court: Arc<Mutex<Court>>,
}

impl FaultyLink {
    /// Sends a step; when it is executed, the judge is told `what` it did.
    fn step<T: std::fmt::Debug + Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Sim, &dyn Link, &NodeId) -> Result<T, StoreError> + Send + 'static,
        what: impl FnOnce(&T, &NodeId) -> Did + Send + 'static,
        heard: impl FnOnce(&Sim, &mut Court, &T, &NodeId) + Send + 'static,
    ) -> Pending<T> {
        let (inner, node, listener) = (Arc::clone(&self.inner), self.node.clone(), self.node.clone());
        let (name, key, court) = (self.way.process.name.clone(), self.key.clone(), Arc::clone(&self.court));
        let execute = move |sim: &Sim| {
            let answer = step(sim, &*inner, &node)?;
            sim.world.say(|| format!("{name} {kind} -> {answer:?}"));
            sim.judge(&key, what(&answer, &node));
            Ok(answer)
        };
        self.way.ask(kind, execute, move |sim, answer| heard(sim, &mut lock(&court), answer, &listener))
    }

    /// The turn that a request is to name: its own, or whatever the store has, without rule 6.
    fn heard_turn(inner: &dyn Link, heard: Turn) -> Turn {
        if !without(6) {
            return heard;
        }
        // A later page takes no turn, and tells the one there is.
        let page = Reconcile { heard, after: JobId::new("~").ok(), limit: 1 };
        match now(inner.reconcile(page)) {
            Ok(Turned::Done(page)) => page.standing.turn,
            Ok(Turned::Reconcile(standing)) => standing.turn,
            Err(_) => heard,
        }
    }
}

fn noted(id: JobId, node: &NodeId, token: Token, (begins, answer): (bool, &Noted)) -> Did {
    Did::Note { id, node: node.clone(), token, begins, note: answer.note }
}

const fn nothing<T>(_: &Sim, _: &mut Court, _: &T, _: &NodeId) {}

impl Link for FaultyLink {
    fn transfer(&self, mut request: Transfer) -> Pending<Turned<Transferred>> {
        self.way.sim.world.say(|| format!("{} sends {request:?}", self.way.process.name));
        let step = move |sim: &Sim, inner: &dyn Link, _: &NodeId| {
            request.heard = Self::heard_turn(inner, request.heard);
            let mut answer = now(inner.transfer(request))?;
            if let Turned::Done(done) = &mut answer
                && done.foreign_lease.as_ref().is_some_and(|(node, _)| sim.is_hidden(node))
            {
                done.foreign_lease = None;
            }
            Ok(answer)
        };
        let what = |answer: &Turned<Transferred>, node: &NodeId| match answer {
            Turned::Done(done) => Did::Claim { node: node.clone(), claims: done.claims.clone(), aged: false },
            Turned::Reconcile(_) => Did::Nothing,
        };
        self.step("transfer", step, what, |_, court, answer, node| {
            if let Turned::Done(done) = answer {
                court.claims_heard(node, &done.claims);
            }
        })
    }

    fn settle(&self, request: Settle) -> Pending<Settled> {
        let asked = request.outcomes.clone();
        self.way.sim.world.say(|| format!("{} sends {request:?}", self.way.process.name));
        let step = move |sim: &Sim, inner: &dyn Link, node: &NodeId| {
            let mut request = request;
            request.heard = Self::heard_turn(inner, request.heard);
            if without(10) {
                for outcome in &mut request.outcomes {
                    outcome.token = sim.court().token_of(node, &outcome.id).unwrap_or(outcome.token);
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

    fn hold(&self, request: Hold) -> Pending<Standing> {
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| {
            now(inner.hold(Hold { heard: Self::heard_turn(inner, request.heard), ..request }))
        };
        self.step("hold", step, |_, _| Did::Nothing, nothing)
    }

    fn begin(&self, request: Begin) -> Pending<Noted> {
        let (id, token) = (request.id.clone(), request.token);
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.begin(request));
        self.step("begin", step, move |answer, node| noted(id, node, token, (true, answer)), nothing)
    }

    fn exhaust(&self, request: Exhaust) -> Pending<Noted> {
        let (id, token) = (request.id.clone(), request.token);
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.exhaust(request));
        self.step("exhaust", step, move |answer, node| noted(id, node, token, (false, answer)), nothing)
    }

    fn reconcile(&self, request: Reconcile) -> Pending<Turned<Reconciled>> {
        let request = Reconcile { limit: request.limit.min(FEW), ..request };
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| {
            let answer = now(inner.reconcile(request))?;
            if let Turned::Done(page) = &answer
                && without(6)
            {
                now(inner.hold(Hold { heard: page.standing.turn, lease: NodeSettings::default().lease }))?;
            }
            Ok(answer)
        };
        self.step(
            "reconcile",
            step,
            |_, _| Did::Nothing,
            |sim, court, answer, node| {
                if matches!(answer, Turned::Done(page) if page.next.is_none()) {
                    court.reconciled(node, sim.world.now());
                }
            },
        )
    }

    fn reclaim(&self, request: Reclaim) -> Pending<Reclaimed> {
        let request = Reclaim { limit: request.limit.min(FEW), ..request };
        let (from, reclaims) = (request.node.clone(), request.clone());
        let step = move |sim: &Sim, inner: &dyn Link, _: &NodeId| {
            let mut request = reclaims;
            if sim.is_hidden(&request.node) {
                return Ok(Reclaimed::default());
            }
            if without(20) {
                request.seen = sim.court().lease_of(&request.node).unwrap_or(request.seen);
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
        let watched = self.way.sim.world.now() - self.made;
        let what = move |answer: &Reclaimed, _: &NodeId| match answer.moved {
            0 => Did::Nothing,
            _ => Did::Reclaim { from, seen, watched, charged: seen != dq::time::Timestamp::EPOCH },
        };
        self.step("reclaim", step, what, nothing)
    }

    fn release(&self, request: Release) -> Pending<Standing> {
        let step = move |sim: &Sim, inner: &dyn Link, node: &NodeId| {
            let standing = now(inner.release(request))?;
            if without(8) && standing.rows > 0 {
                sim.hide(node);
            }
            Ok(standing)
        };
        self.step("release", step, |_, node| Did::Release { node: node.clone() }, nothing)
    }

    fn age(&self, request: Age) -> Pending<Turned<Aged>> {
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.age(request));
        let what = |answer: &Turned<Aged>, node: &NodeId| match answer {
            Turned::Done(done) => Did::Claim { node: node.clone(), claims: done.claims.clone(), aged: true },
            Turned::Reconcile(_) => Did::Nothing,
        };
        self.step("age", step, what, |_, court, answer, node| {
            if let Turned::Done(done) = answer {
                court.claims_heard(node, &done.claims);
            }
        })
    }

    fn cast(&self, request: Cast) -> Pending<Casted> {
        let request = Cast { limit: request.limit.min(FEW), ..request };
        let step = move |_: &Sim, inner: &dyn Link, _: &NodeId| now(inner.cast(request));
        let what =
            move |casted: &Casted, _: &NodeId| Did::Cast { casted: *casted, expires_after: request.expires_after };
        self.step("cast", step, what, nothing)
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

impl Sim {
    pub(super) fn listen(&self, ear: Ear) {
        let mut ears = lock(&self.ears);
        ears.retain(|ear| !ear.outer.is_closed() && !ear.process.is_dead());
        ears.push(Arc::new(ear));
    }

    pub(super) fn ears(&self) -> Vec<Arc<Ear>> {
        lock(&self.ears).clone()
    }

    /// Breaks the subscriptions of a process, as a lost connection does.
    pub(super) fn break_ears(&self, process: Option<&Arc<Process>>) {
        lock(&self.ears).retain(|ear| process.is_some_and(|process| !Arc::ptr_eq(process, &ear.process)));
    }
}

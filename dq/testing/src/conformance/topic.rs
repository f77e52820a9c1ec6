//! One topic under examination: the steps of its nodes, short enough to write a behaviour in a few lines.
//!
//! A node is named by a short text. It is there from its first use, which sends the `reconcile` that a node begins with;
//! from then on the driver keeps the turn that the node has heard. After every step that goes through the driver the
//! whole topic is [audited](Topic::audit), and the number of rows that the answer told is compared with the rows there are.
//! What must go wrong (a wrong turn, a wrong token) is sent through the bare [`link`](Topic::link).
//!
//! Every method panics when the store fails or does what no behaviour allows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fixture::StoreFixture;
use dq::job::{AppName, JobId, Metadata, NodeId, ProducerId, Sequence, TopicKey, TopicName};
use dq::store::step::{
    Change, Claim, Exhaust, Isolate, LeaseStatus, MOST_JOBS, NoteVerdict, Outcome, Reclaim, Reclaimed, Reconcile,
    Reconciled, Release, Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept, Transfer, Transferred,
    Verdict, Wake,
};
use dq::store::{Link, Producer, Store};
use dq::time::Timestamp;

/// How long the leases of these nodes last.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// What these nodes give as their fallback.
pub(super) const FALLBACK: Duration = Duration::from_secs(15);

/// How many crashes exhaust a job here.
pub(super) const MAX_CRASHES: u32 = 3;

/// What the clock shows first: a whole second.
pub(super) const START: u64 = 1_763_000_000_000_000;

/// `n` milliseconds.
pub(super) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// `n` seconds.
pub(super) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// The id with this text.
pub(super) fn id(text: &str) -> JobId {
    JobId::new(text).expect("ids of the suite are short")
}

/// The answer of a step whose turn was right.
pub(super) fn done<T: fmt::Debug>(answer: Sequenced<T>) -> T {
    match answer {
        Sequenced::Done(done) => done,
        Sequenced::Reconcile(lease_status) => {
            panic!("the turn was right, and the store asks to reconcile: {lease_status:?}")
        }
    }
}

/// The answer of a step whose turn was wrong.
pub(super) fn refused<T: fmt::Debug>(answer: Sequenced<T>) -> LeaseStatus {
    match answer {
        Sequenced::Reconcile(lease_status) => lease_status,
        Sequenced::Done(done) => panic!("the turn was wrong, and the step was done: {done:?}"),
    }
}

/// A topic, its nodes and its caller.
pub struct Topic {
    pub(super) fixture: Arc<dyn StoreFixture>,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: TopicKey,
    pub(super) producer: Arc<dyn Producer>,
    pub(super) number: AtomicU64,
    pub(super) known: Mutex<BTreeSet<JobId>>,
    nodes: Mutex<BTreeMap<String, Node>>,
}

/// What the driver knows of a node.
struct Node {
    link: Arc<dyn Link>,
    last_seen: Sequence,
    /// Its turn is known to the store, as far as the driver knows.
    entered: bool,
}

/// A store forgets the turn of a node that was silent for a day.
const SILENCE: u64 = 23 * 3_600 * 1_000_000;

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("store", &self.store).field("key", &self.key).finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Topic {
    /// The topic for the behaviour of this name; the clock shows the start.
    pub async fn open(fixture: impl StoreFixture, behaviour: &str) -> Self {
        let fixture: Arc<dyn StoreFixture> = Arc::new(fixture);
        fixture.set_clock(START).await;
        Self::new(fixture, "conformance", behaviour).await
    }

    /// Another topic of the same store, under the same clock.
    pub async fn beside(&self, app: &str, topic: &str) -> Self {
        Self::new(self.fixture.clone(), app, topic).await
    }

    async fn new(fixture: Arc<dyn StoreFixture>, app: &str, topic: &str) -> Self {
        let key = TopicKey {
            app: AppName::new(app).expect("the app's name is valid"),
            topic: TopicName::new(topic).expect("the topic's name is valid"),
        };
        let store = fixture.store();
        store.open(&key).await.expect("the topic opens");
        let producer = store.producer(&key, &ProducerId::new("caller"));
        Self {
            fixture,
            store,
            key,
            producer,
            number: AtomicU64::new(0),
            known: Mutex::default(),
            nodes: Mutex::default(),
        }
    }

    /// Microseconds on the store's clock.
    pub fn micros(&self) -> u64 {
        self.fixture.clock()
    }

    /// The store's clock as a store tells it: rounded down.
    pub fn now(&self) -> Timestamp {
        Timestamp::floor_micros(self.micros())
    }

    /// The point in time so many milliseconds from now.
    pub fn in_ms(&self, n: u64) -> Timestamp {
        self.now().after(ms(n))
    }

    /// Moves the store's clock on.
    pub async fn advance(&self, by: Duration) {
        self.set_clock(self.micros() + by.as_micros() as u64).await;
    }

    /// Sets the store's clock. Nodes begin anew with a reconcile when they were silent for a day.
    pub async fn set_clock(&self, micros: u64) {
        if micros > self.micros() + SILENCE {
            lock(&self.nodes).values_mut().for_each(|node| node.entered = false);
        }
        self.fixture.set_clock(micros).await;
    }

    /// The identity of the node with this short name.
    pub fn node(&self, node: &str) -> NodeId {
        NodeId::new(node)
    }

    /// The bare link of a node, made at its first use.
    pub fn link(&self, node: &str) -> Arc<dyn Link> {
        let mut nodes = lock(&self.nodes);
        let made =
            || Node { link: self.store.link(&self.key, &self.node(node)), last_seen: Sequence(0), entered: false };
        nodes.entry(node.into()).or_insert_with(made).link.clone()
    }

    /// The last turn that the node has heard.
    pub fn last_seen(&self, node: &str) -> Sequence {
        lock(&self.nodes).get(node).map_or(Sequence(0), |node| node.last_seen)
    }

    fn receive(&self, node: &str, sequence: Sequence) {
        if let Some(node) = lock(&self.nodes).get_mut(node) {
            (node.last_seen, node.entered) = (sequence, true);
        }
    }

    /// The first request of a node, if it has sent none through the driver.
    pub async fn enter(&self, node: &str) {
        let entered = lock(&self.nodes).get(node).is_some_and(|node| node.entered);
        if !entered {
            self.reconcile(node).await;
        }
    }

    /// A transfer as this node would ask for it.
    pub fn transfer_of(&self, node: &str, limit: usize) -> Transfer {
        Transfer { last_seen: self.last_seen(node), limit, lease: LEASE, fallback: FALLBACK }
    }

    /// A settlement of one job as this node would ask for it.
    pub fn settle_of(&self, node: &str, claim: &Claim, change: Change) -> Settle {
        let outcomes = vec![Outcome { id: claim.id.clone(), token: claim.token, change, metadata: None }];
        Settle { last_seen: self.last_seen(node), lease: LEASE, outcomes }
    }

    /// An `sweep` as this node would ask for it: UNACKED for 7 days, DEAD for 30, at most 100,000.
    pub fn age_of(&self, node: &str, limit: usize) -> Sweep {
        let day = secs(24 * 3600);
        let last_seen = self.last_seen(node);
        Sweep { last_seen, limit, lease: LEASE, unacked_age: 7 * day, dead_kept: 30 * day, dead_most: 100_000 }
    }

    async fn stood(&self, node: &str, lease_status: LeaseStatus) {
        assert_eq!(lease_status.rows, self.rows(node).await.len(), "rows of {node} in the answer");
        self.audit().await;
    }

    /// Transfers up to `limit` jobs.
    pub async fn transfer(&self, node: &str, limit: usize) -> Transferred {
        self.enter(node).await;
        let answer = self.link(node).transfer(self.transfer_of(node, limit)).await.expect("transfer is answered");
        let answer = done(answer);
        assert_eq!(answer.lease_status.sequence, self.last_seen(node).next(), "a transfer takes one turn");
        assert_eq!(answer.clock, self.now());
        self.receive(node, answer.lease_status.sequence);
        self.stood(node, answer.lease_status).await;
        answer
    }

    /// Claims everything that is due; among equal due times, of which no order is promised, in the order of the ids.
    pub async fn claims(&self, node: &str) -> Vec<Claim> {
        let mut claims = self.transfer(node, MOST_JOBS).await.claims;
        assert!(claims.is_sorted_by_key(|claim| claim.token.due), "claims come earliest due first: {claims:?}");
        claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
        claims
    }

    /// The ids of everything that is due, which is claimed.
    pub async fn claimed_ids(&self, node: &str) -> Vec<String> {
        self.claims(node).await.iter().map(|claim| claim.id.to_string()).collect()
    }

    /// Claims everything that is due, which is this job.
    pub async fn claim(&self, node: &str, only: &str) -> Claim {
        let mut claims = self.claims(node).await;
        assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), [only], "what {node} claimed");
        claims.remove(0)
    }

    /// Adds a job without delay and claims it.
    pub async fn running(&self, node: &str, job: &str) -> Claim {
        self.add(job).await;
        self.claim(node, job).await
    }

    /// Settles outcomes as they are.
    pub async fn settle_all(&self, node: &str, outcomes: Vec<Outcome>) -> Settled {
        let request = Settle { last_seen: self.last_seen(node), lease: LEASE, outcomes };
        let answer = self.link(node).settle(request).await.expect("settle is answered");
        self.stood(node, answer.lease_status).await;
        answer
    }

    /// Settles one job and tells the verdict.
    pub async fn settle(&self, node: &str, claim: &Claim, change: Change) -> Verdict {
        self.settle_all(node, self.settle_of(node, claim, change).outcomes).await.verdicts.remove(0)
    }

    /// Ends a run, which must work.
    pub async fn end(&self, node: &str, claim: &Claim, change: Change) {
        assert_eq!(self.settle(node, claim, change).await, Verdict::Done);
    }

    /// Ends a run with a new front, which must work.
    pub async fn end_with(&self, node: &str, claim: &Claim, change: Change, metadata: Metadata) {
        let outcome = Outcome { id: claim.id.clone(), token: claim.token, change, metadata: Some(metadata) };
        assert_eq!(self.settle_all(node, vec![outcome]).await.verdicts, [Verdict::Done]);
    }

    /// A heartbeat.
    pub async fn renew(&self, node: &str) -> LeaseStatus {
        let lease_status = self.link(node).renew(Renew { last_seen: self.last_seen(node), lease: LEASE }).await;
        let lease_status = lease_status.expect("hold is answered");
        self.stood(node, lease_status).await;
        lease_status
    }

    /// Notes that the job is about to run alone.
    pub async fn isolate(&self, node: &str, claim: &Claim) -> NoteVerdict {
        let request =
            Isolate { last_seen: self.last_seen(node), lease: LEASE, id: claim.id.clone(), token: claim.token };
        let noted = self.link(node).isolate(request).await.expect("begin is answered");
        self.stood(node, noted.lease_status).await;
        noted.note
    }

    /// Notes that no attempt is left.
    pub async fn exhaust(&self, node: &str, claim: &Claim, metadata: Metadata) -> NoteVerdict {
        let (id, token) = (claim.id.clone(), claim.token);
        let noted = self
            .link(node)
            .exhaust(Exhaust { last_seen: self.last_seen(node), lease: LEASE, id, token, metadata })
            .await;
        let noted = noted.expect("exhaust is answered");
        self.stood(node, noted.lease_status).await;
        noted.note
    }

    /// The first page of a reconcile, with all rows.
    pub async fn reconcile(&self, node: &str) -> Reconciled {
        let request = Reconcile { last_seen: self.last_seen(node), after: None, limit: MOST_JOBS };
        let answer = done(self.link(node).reconcile(request).await.expect("reconcile is answered"));
        self.receive(node, answer.lease_status.sequence);
        self.stood(node, answer.lease_status).await;
        answer
    }

    /// Reclaims rows of `node`, whose lease was seen to end at `seen`.
    pub async fn reclaim(&self, by: &str, node: &str, seen: Timestamp, limit: usize) -> Reclaimed {
        let request = Reclaim { node: self.node(node), seen, limit, max_crashes: MAX_CRASHES };
        let answer = self.link(by).reclaim(request).await.expect("reclaim is answered");
        self.audit().await;
        answer
    }

    /// The node dies: its lease runs out and all it held is reclaimed.
    pub async fn crash(&self, node: &str) {
        self.advance(LEASE + ms(1)).await;
        let seen = self.lease(node).await.expect("who crashes holds jobs");
        let held = self.rows(node).await.len();
        assert_eq!(self.reclaim("reclaimer", node, seen, MOST_JOBS).await, Reclaimed { moved: held, left: 0 });
    }

    /// Ends a node cleanly.
    pub async fn release(&self, node: &str) -> LeaseStatus {
        let lease_status =
            self.link(node).release(Release { last_seen: self.last_seen(node) }).await.expect("release is answered");
        self.receive(node, lease_status.sequence);
        self.stood(node, lease_status).await;
        lease_status
    }

    /// Ages; see [`age_of`](Self::age_of) for what may be asked.
    pub async fn sweep(&self, node: &str, request: Sweep) -> Swept {
        self.enter(node).await;
        let request = Sweep { last_seen: self.last_seen(node), ..request };
        let answer = done(self.link(node).sweep(request).await.expect("age is answered"));
        self.receive(node, answer.lease_status.sequence);
        self.stood(node, answer.lease_status).await;
        answer
    }

    /// Claims the only job that has been UNACKED for seven days.
    pub async fn claim_unacked(&self, node: &str, only: &str) -> Claim {
        let mut claims = self.sweep(node, self.age_of(node, MOST_JOBS)).await.claims;
        assert_eq!(claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(), [only], "what {node} claimed");
        claims.remove(0)
    }

    /// Frees the roles of a node.
    pub async fn wake(&self, node: &str) {
        self.link(node).wake(Wake).await.expect("wake is answered");
    }

    /// All leases and the audit of the store itself.
    pub async fn scan(&self) -> Scanned {
        self.link("auditor").scan(Scan).await.expect("scan is answered")
    }

    /// When the lease of a node ends.
    pub async fn lease(&self, node: &str) -> Option<Timestamp> {
        let leases = self.scan().await.leases;
        leases.into_iter().find(|(holder, _)| holder.as_str() == node).map(|(_, end)| end)
    }
}

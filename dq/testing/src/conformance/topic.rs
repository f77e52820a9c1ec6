//! The topic under test and the steps of its nodes, short enough to write a behaviour in a few lines.
//!
//! A short text names a node. The first use of a name sends the `reconcile` with which a node begins; from then on this
//! module keeps the node's last seen sequence number. After every step the whole topic is [audited](Topic::audit), and the
//! number of rows in the answer must be the number of rows there are. A behaviour sends requests that must fail (a wrong
//! sequence number, a wrong token) over the bare [`link`](Topic::link).
//!
//! Every method panics if the store fails or does what no behaviour allows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fixture::StoreFixture;
use dq::job::{AppName, Isolation, JobId, KeptState, Metadata, NodeId, ProducerId, Sequence, TopicKey, TopicName};
use dq::store::step::{
    Change, Claim, DEFAULT_BYTES, Exhaust, Isolate, LeaseStatus, MAX_JOBS, Note, NoteVerdict, Noting, Outcome, Reclaim,
    Reclaimed, Reconcile, Reconciled, Release, Renew, Scan, Scanned, Sequenced, Settle, Settled, Sweep, Swept,
    Transfer, Transferred, Verdict, Wake,
};
use dq::store::{Link, LinkOptions, Producer, Store};
use dq::time::Timestamp;

/// The lease that these nodes request.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// The fallback that these nodes request.
pub(super) const FALLBACK: Duration = Duration::from_secs(15);

/// The number of crashes that exhausts a job.
pub(super) const MAX_CRASHES: u32 = 3;

/// The store's clock at the start of a behaviour, in µs: a whole second.
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

/// The answer to a request with the right sequence number.
pub(super) fn done<T: fmt::Debug>(answer: Sequenced<T>) -> T {
    match answer {
        Sequenced::Done(done) => done,
        Sequenced::Reconcile(lease_status) => {
            panic!("the sequence number was right, and the store asks to reconcile: {lease_status:?}")
        }
    }
}

/// The answer to a request with a wrong sequence number.
pub(super) fn refused<T: fmt::Debug>(answer: Sequenced<T>) -> LeaseStatus {
    match answer {
        Sequenced::Reconcile(lease_status) => lease_status,
        Sequenced::Done(done) => panic!("the sequence number was wrong, and the step was done: {done:?}"),
    }
}

/// A topic, its nodes and its producer.
pub struct Topic {
    pub(super) fixture: Arc<dyn StoreFixture>,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: TopicKey,
    pub(super) producer: Arc<dyn Producer>,
    pub(super) number: AtomicU64,
    pub(super) known: Mutex<BTreeSet<JobId>>,
    /// How many steps the next audit leaves out.
    pub(super) left_out: AtomicUsize,
    nodes: Mutex<BTreeMap<String, Node>>,
}

/// What this module knows of a node.
struct Node {
    link: Arc<dyn Link>,
    last_seen: Sequence,
    /// Whether the store should know the node's sequence number.
    entered: bool,
}

/// How long a store keeps the sequence number of a silent node for certain, in µs; it forgets the number after a day.
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
    /// The topic for the behaviour with this name; sets the clock to the start.
    pub async fn open(fixture: impl StoreFixture, behaviour: &str) -> Self {
        let fixture: Arc<dyn StoreFixture> = Arc::new(fixture);
        fixture.set_clock(START).await;
        Self::new(fixture, "conformance", behaviour).await
    }

    /// Another topic of the same store, with the same clock.
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
            left_out: AtomicUsize::new(0),
            nodes: Mutex::default(),
        }
    }

    /// Microseconds on the store's clock.
    pub fn micros(&self) -> u64 {
        self.fixture.clock()
    }

    /// The store's clock as it is in answers: rounded down to the millisecond.
    pub fn now(&self) -> Timestamp {
        Timestamp::floor_micros(self.micros())
    }

    /// The time `n` milliseconds from now.
    pub fn in_ms(&self, n: u64) -> Timestamp {
        self.now().after(ms(n))
    }

    /// Moves the store's clock forward.
    pub async fn advance(&self, by: Duration) {
        self.set_clock(self.micros() + by.as_micros() as u64).await;
    }

    /// Sets the store's clock. After about a day, nodes begin again with a reconcile.
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

    /// The bare link of a node; its first use creates it.
    pub fn link(&self, node: &str) -> Arc<dyn Link> {
        let mut nodes = lock(&self.nodes);
        let made =
            || Node { link: self.store.link(&self.key, &self.node(node)), last_seen: Sequence(0), entered: false };
        nodes.entry(node.into()).or_insert_with(made).link.clone()
    }

    /// From now on the topic counts the steps of this node, which has sent none.
    pub fn counts_steps_of(&self, node: &str) {
        self.linked(node, LinkOptions { counts: true, ..LinkOptions::default() });
    }

    /// A node with a link of its own kind, which has sent nothing.
    pub(super) fn linked(&self, node: &str, options: LinkOptions) {
        let link = self.store.link_with(&self.key, &self.node(node), options);
        let before = lock(&self.nodes).insert(node.into(), Node { link, last_seen: Sequence(0), entered: false });
        assert!(before.is_none(), "{node} has another link already");
    }

    /// The node's last seen sequence number.
    pub fn last_seen(&self, node: &str) -> Sequence {
        lock(&self.nodes).get(node).map_or(Sequence(0), |node| node.last_seen)
    }

    fn receive(&self, node: &str, sequence: Sequence) {
        if let Some(node) = lock(&self.nodes).get_mut(node) {
            (node.last_seen, node.entered) = (sequence, true);
        }
    }

    /// Sends the first reconcile of a node, if the node has sent none.
    pub async fn enter(&self, node: &str) {
        let entered = lock(&self.nodes).get(node).is_some_and(|node| node.entered);
        if !entered {
            self.reconcile(node).await;
        }
    }

    /// A transfer as this node would send it.
    pub fn transfer_of(&self, node: &str, limit: usize) -> Transfer {
        Transfer { fallback: FALLBACK, ..Transfer::new(self.last_seen(node), limit, LEASE) }
    }

    /// A settle of one job as this node would send it.
    pub fn settle_of(&self, node: &str, claim: &Claim, change: Change) -> Settle {
        let outcomes = vec![claim.outcome(change)];
        Settle { last_seen: self.last_seen(node), lease: LEASE, bytes: DEFAULT_BYTES, outcomes }
    }

    /// A sweep as this node would send it: UNACKED for 7 days, DEAD for 30 days, at most 100,000 DEAD jobs.
    pub fn sweep_of(&self, node: &str, limit: usize) -> Sweep {
        let (last_seen, bytes, lease, day) = (self.last_seen(node), DEFAULT_BYTES, LEASE, secs(24 * 3600));
        let (park_timeout, dead_retention, dead_max, done_max) = (7 * day, 30 * day, 100_000, None);
        Sweep { last_seen, limit, bytes, lease, park_timeout, dead_retention, dead_max, done_max }
    }

    async fn check_answer(&self, node: &str, lease_status: LeaseStatus) {
        assert_eq!(lease_status.rows, self.rows(node).await.len(), "rows of {node} in the answer");
        self.audit_step().await;
    }

    /// Transfers up to `limit` jobs.
    pub async fn transfer(&self, node: &str, limit: usize) -> Transferred {
        self.enter(node).await;
        self.transfer_with(node, self.transfer_of(node, limit)).await
    }

    /// Sends a transfer of a node that has entered.
    pub async fn transfer_with(&self, node: &str, request: Transfer) -> Transferred {
        let answer = self.link(node).step(request).await.expect("transfer is answered");
        let answer = done(answer);
        assert_eq!(answer.lease_status.sequence, self.last_seen(node).next(), "a transfer takes one sequence number");
        assert_eq!(answer.clock, self.now());
        self.receive(node, answer.lease_status.sequence);
        self.check_answer(node, answer.lease_status).await;
        answer
    }

    /// Claims all jobs that are due. Returns those with equal due times, whose order no store promises, in order of their ids.
    pub async fn claims(&self, node: &str) -> Vec<Claim> {
        let mut claims = self.transfer(node, MAX_JOBS).await.claims;
        assert!(claims.is_sorted_by_key(|claim| claim.token.due), "claims come earliest due first: {claims:?}");
        claims.sort_by_key(|claim| (claim.token.due, claim.id.clone()));
        claims
    }

    /// Claims all jobs that are due and returns their ids.
    pub async fn claimed_ids(&self, node: &str) -> Vec<String> {
        self.claims(node).await.iter().map(|claim| claim.id.to_string()).collect()
    }

    /// Claims this job, which must be the only one that is due.
    pub async fn claim(&self, node: &str, only: &str) -> Claim {
        let mut claims = self.claims(node).await;
        assert_eq!(ids(&claims), [only], "what {node} claimed");
        claims.remove(0)
    }

    /// Adds a job without delay and claims it.
    pub async fn running(&self, node: &str, job: &str) -> Claim {
        self.add(job).await;
        self.claim(node, job).await
    }

    /// Runs this job, which must be the only one that is due: claims it, and ends its run.
    pub async fn run(&self, node: &str, only: &str, change: Change) {
        let claim = self.claim(node, only).await;
        self.end(node, &claim, change).await;
    }

    /// Adds a job without delay, and runs it.
    pub async fn add_and_run(&self, node: &str, job: &str, change: Change) {
        self.add(job).await;
        self.run(node, job, change).await;
    }

    /// Settles these outcomes.
    pub async fn settle_all(&self, node: &str, outcomes: Vec<Outcome>) -> Settled {
        let request = Settle { last_seen: self.last_seen(node), lease: LEASE, bytes: DEFAULT_BYTES, outcomes };
        let answer = self.link(node).step(request).await.expect("settle is answered");
        self.check_answer(node, answer.lease_status).await;
        answer
    }

    /// Settles one job and returns the verdict.
    pub async fn settle(&self, node: &str, claim: &Claim, change: Change) -> Verdict {
        self.settle_all(node, self.settle_of(node, claim, change).outcomes).await.verdicts.remove(0)
    }

    /// Settles one job; the verdict must be *done*.
    pub async fn end(&self, node: &str, claim: &Claim, change: Change) {
        assert_eq!(self.settle(node, claim, change).await, Verdict::Done);
    }

    /// Settles one job with new metadata; the verdict must be *done*.
    pub async fn end_with(&self, node: &str, claim: &Claim, change: Change, metadata: Metadata) {
        let outcome = Outcome { metadata: Some(metadata), ..claim.outcome(change) };
        assert_eq!(self.settle_all(node, vec![outcome]).await.verdicts, [Verdict::Done]);
    }

    /// Renews the node's lease.
    pub async fn renew(&self, node: &str) -> LeaseStatus {
        let lease_status = self.link(node).step(Renew { last_seen: self.last_seen(node), lease: LEASE }).await;
        let lease_status = lease_status.expect("renew is answered");
        self.check_answer(node, lease_status).await;
        lease_status
    }

    /// Notes that the job is about to run alone.
    pub async fn isolate(&self, node: &str, claim: &Claim) -> NoteVerdict {
        self.isolate_all(node, Isolation::Alone, &[claim]).await[0]
    }

    /// Notes that the job is about to run in a group.
    pub async fn group(&self, node: &str, claim: &Claim) -> NoteVerdict {
        self.isolate_all(node, Isolation::Grouped, &[claim]).await[0]
    }

    /// Notes how the jobs are about to run.
    pub async fn isolate_all(&self, node: &str, isolation: Isolation, claims: &[&Claim]) -> Vec<NoteVerdict> {
        let request = isolate_of(self.last_seen(node), isolation, claims);
        let isolated = self.link(node).step(request).await.expect("isolate is answered");
        self.check_answer(node, isolated.lease_status).await;
        isolated.notes.expect("the request names the right sequence number")
    }

    /// Notes that no attempt is left.
    pub async fn exhaust(&self, node: &str, claim: &Claim, metadata: Metadata) -> NoteVerdict {
        let (id, token) = (claim.id.clone(), claim.token);
        let noted =
            self.link(node).step(Exhaust { last_seen: self.last_seen(node), lease: LEASE, id, token, metadata }).await;
        let noted = noted.expect("exhaust is answered");
        self.check_answer(node, noted.lease_status).await;
        noted.note
    }

    /// Saves a state of the run.
    pub async fn note(&self, node: &str, claim: &Claim, state: &str) -> NoteVerdict {
        self.note_what(node, claim, Noting::State(with_state(claim, state))).await
    }

    /// Saves the state of the run, or its progress.
    pub async fn note_what(&self, node: &str, claim: &Claim, what: Noting) -> NoteVerdict {
        let number = self.numbered::<()>(Vec::new()).number;
        self.note_numbered(node, claim, number, what).await
    }

    /// Saves the state of the run, or its progress, under this number.
    pub async fn note_numbered(&self, node: &str, claim: &Claim, number: u64, what: Noting) -> NoteVerdict {
        let (last_seen, id, token) = (self.last_seen(node), claim.id.clone(), claim.token);
        let noted = self.link(node).step(Note { last_seen, lease: LEASE, id, token, number, what }).await;
        let noted = noted.expect("note is answered");
        self.check_answer(node, noted.lease_status).await;
        noted.note
    }

    /// Reconciles with one page that has room for all rows.
    pub async fn reconcile(&self, node: &str) -> Reconciled {
        let request = Reconcile { last_seen: self.last_seen(node), after: None, limit: MAX_JOBS };
        let answer = done(self.link(node).step(request).await.expect("reconcile is answered"));
        self.receive(node, answer.lease_status.sequence);
        self.check_answer(node, answer.lease_status).await;
        answer
    }

    /// Node `by` reclaims rows of `node`, whose lease it saw end at `seen`.
    pub async fn reclaim(&self, by: &str, node: &str, seen: Timestamp, limit: usize) -> Reclaimed {
        let request = Reclaim { node: self.node(node), seen, limit, bytes: DEFAULT_BYTES, max_crashes: MAX_CRASHES };
        let answer = self.link(by).step(request).await.expect("reclaim is answered");
        self.audit_step().await;
        answer
    }

    /// Crashes a node: its lease expires, and another node reclaims all its jobs.
    pub async fn crash(&self, node: &str) {
        self.advance(LEASE + ms(1)).await;
        let seen = self.lease(node).await.expect("a node that crashes holds jobs");
        let held = self.rows(node).await.len();
        assert_eq!(self.reclaim("reclaimer", node, seen, MAX_JOBS).await, Reclaimed { moved: held, left: 0 });
    }

    /// Ends a node cleanly.
    pub async fn release(&self, node: &str) -> LeaseStatus {
        let lease_status =
            self.link(node).step(Release { last_seen: self.last_seen(node) }).await.expect("release is answered");
        self.receive(node, lease_status.sequence);
        self.check_answer(node, lease_status).await;
        lease_status
    }

    /// Sends a sweep; [`sweep_of`](Self::sweep_of) builds the request.
    pub async fn sweep(&self, node: &str, request: Sweep) -> Swept {
        self.enter(node).await;
        let request = Sweep { last_seen: self.last_seen(node), ..request };
        let answer = done(self.link(node).step(request).await.expect("sweep is answered"));
        self.receive(node, answer.lease_status.sequence);
        self.check_answer(node, answer.lease_status).await;
        answer
    }

    /// Claims this job, which must be the only one that has been UNACKED for seven days.
    pub async fn claim_unacked(&self, node: &str, only: &str) -> Claim {
        let mut claims = self.sweep(node, self.sweep_of(node, MAX_JOBS)).await.claims;
        assert_eq!(ids(&claims), [only], "what {node} claimed");
        claims.remove(0)
    }

    /// Frees the roles of a node.
    pub async fn wake(&self, node: &str) {
        self.link(node).step(Wake).await.expect("wake is answered");
    }

    /// Reads all leases and runs the store's own audit.
    pub async fn scan(&self) -> Scanned {
        self.link("auditor").step(Scan).await.expect("scan is answered")
    }

    /// The end of a node's lease.
    pub async fn lease(&self, node: &str) -> Option<Timestamp> {
        let leases = self.scan().await.leases;
        leases.into_iter().find(|(holder, _)| holder.as_str() == node).map(|(_, end)| end)
    }
}

/// The ids of these claims, in their order.
pub(super) fn ids(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.id.as_str()).collect()
}

/// The metadata of a claimed job, with this state.
pub(super) fn with_state(claim: &Claim, state: &str) -> Metadata {
    let metadata = claim.record.metadata().expect("the record is readable");
    Metadata { state: Some(KeptState::from_bytes(state.as_bytes())), ..metadata }
}

/// The request that notes how these claims are about to run.
pub(super) fn isolate_of(last_seen: Sequence, isolation: Isolation, claims: &[&Claim]) -> Isolate {
    let runs = claims.iter().map(|claim| (claim.id.clone(), claim.token)).collect();
    Isolate { last_seen, lease: LEASE, isolation: Some(isolation), runs }
}

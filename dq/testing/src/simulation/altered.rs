//! Rules taken away at the link between a node and the store: requests and answers are altered on their way.
//!
//! The node and the store keep every rule. One of them gets false requests or answers, so together they break one.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::FutureExt;

use super::file::{FileLink, FileProducer};
use super::node::CAPS;
use super::rules::{is_any_away, without};
use super::sim::Sim;
use super::sync::lock;
use super::units::SECOND;
use dq::config::NodeSettings;
use dq::job::{Codec, Isolation, JobId, Metadata, NodeId, ProducerId, Record, Sequence, State, TopicKey};
use dq::store::step::{
    Change, Claim, DEFAULT_BYTES, Isolate, LeaseStatus, NoteVerdict, Noted, Outcome, Reconcile, Release, Renew,
    Sequenced, Settle, Transfer,
};
use dq::store::{
    Answer, Command, CommandKind, Link, LinkOptions, NewJob, Numbered, OnDuplicate, Pending, Producer, Request,
    Store as _, StoreError,
};
use dq::testing::seam::JobView;
use dq::time::Timestamp;

/// A lease longer than any run: without rule 21 a node believes that it has one.
pub(super) const ENDLESS_LEASE: Duration = Duration::from_secs(24 * 3_600);

/// The link to the memory store in a run that goes without a rule.
#[derive(Debug)]
pub(super) struct AlteredLink {
    pub(super) sim: Arc<Sim>,
    pub(super) inner: Arc<dyn Link>,
    pub(super) node: NodeId,
    pub(super) key: TopicKey,
}

impl AlteredLink {
    /// Without rule 7 no answer counts a row whose claim the node has not received, so nothing starts a reconcile for it.
    fn hide_rows(&self, lease_status: &mut LeaseStatus, claims: &[Claim]) {
        if without("7") {
            lease_status.rows -= self.sim.undelivered(&self.key, &self.node, claims).len();
        }
    }

    /// Without rule 19 a quarantined job is noted as isolated, and its node, which does not know that it is quarantined,
    /// runs it beside others.
    fn isolate_all(&self, last_seen: Sequence, claims: &[Claim]) -> Result<(), StoreError> {
        let quarantined = claims.iter().filter(|claim| without("19") && claim.crashes + 1 >= CAPS.crashes);
        for claim in quarantined {
            let (id, token, lease) = (claim.id.clone(), claim.token, NodeSettings::default().lease);
            let (isolation, runs) = (Some(Isolation::Alone), vec![(id, token)]);
            answer_of(self.inner.step(Isolate { last_seen, lease, isolation, runs }))?;
        }
        Ok(())
    }
}

/// The answer to a step; the memory store has it as soon as the step is called.
pub(super) fn answer_of<T>(answer: Pending<T>) -> Result<T, StoreError> {
    answer.now_or_never().expect("the memory store answers at once")
}

/// Without `bytes` a request takes whatever its count allows.
const fn unbound(request: &mut Request) {
    let bytes = match request {
        Request::Transfer(transfer) => &mut transfer.bytes,
        Request::Settle(settle) => &mut settle.bytes,
        Request::Reclaim(reclaim) => &mut reclaim.bytes,
        Request::Sweep(sweep) => &mut sweep.bytes,
        Request::Publish(publish) => &mut publish.bytes,
        _ => return,
    };
    *bytes = usize::MAX;
}

/// The lease that a request asks for: without rule 21 its node believes in a longer one.
fn lease(asked: Duration) -> Duration {
    if without("21") { NodeSettings::default().lease } else { asked }
}

impl Link for AlteredLink {
    fn ask(&self, request: Request) -> Pending<Answer> {
        let (exhausts, notes) = (matches!(request, Request::Exhaust(_)), matches!(request, Request::Note(_)));
        let answer = answer_of(self.inner.ask(self.altered(request))).and_then(|answer| self.altered_answer(answer));
        Box::pin(ready(answer.map(|answer| match answer {
            Answer::Renew(lease_status) if exhausts => Answer::Exhaust(Noted { lease_status, note: NoteVerdict::Done }),
            Answer::Renew(lease_status) if notes => Answer::Note(Noted { lease_status, note: NoteVerdict::Done }),
            answer => answer,
        })))
    }
}

impl AlteredLink {
    /// Without rule 21 a node gets the usual lease; without rule 15 an `exhaust` only renews it, without `kept` a `note`, which has no
    /// number without `noted`; without `result` no ack brings one; without rule 19 nodes do not know the cap of crashes.
    fn altered(&self, mut request: Request) -> Request {
        match &mut request {
            Request::Transfer(transfer) => transfer.lease = lease(transfer.lease),
            Request::Settle(settle) => {
                settle.lease = lease(settle.lease);
                let acks = settle.outcomes.iter_mut().filter(|outcome| *outcome.change.alone() == Change::Ack);
                acks.filter(|_| without("result")).for_each(|ack| ack.metadata = None);
            }
            Request::Renew(renew) => renew.lease = lease(renew.lease),
            Request::Isolate(isolate) => isolate.lease = lease(isolate.lease),
            Request::Sweep(sweep) => sweep.lease = lease(sweep.lease),
            Request::Exhaust(exhaust) if without("15") => {
                return Renew { last_seen: exhaust.last_seen, lease: exhaust.lease }.into();
            }
            Request::Exhaust(exhaust) => exhaust.lease = lease(exhaust.lease),
            Request::Note(note) if without("kept") => {
                return Renew { last_seen: note.last_seen, lease: note.lease }.into();
            }
            Request::Note(note) => {
                note.lease = lease(note.lease);
                note.number = if without("noted") { 0 } else { note.number };
            }
            Request::Reclaim(reclaim) if without("19") => reclaim.max_crashes = CAPS.crashes,
            _ => {}
        }
        if without("bytes") {
            unbound(&mut request);
        }
        request
    }

    /// Without `early` a node believes that the store's clock is ahead by the lookahead, so all that it claims is due.
    fn altered_answer(&self, mut answer: Answer) -> Result<Answer, StoreError> {
        match &mut answer {
            Answer::Transfer(Sequenced::Done(done)) => {
                self.isolate_all(done.lease_status.sequence, &done.claims)?;
                self.hide_rows(&mut done.lease_status, &done.claims);
                if without("early") {
                    done.micros += self.sim.settings().lookahead;
                }
            }
            Answer::Sweep(Sequenced::Done(done)) => self.hide_rows(&mut done.lease_status, &done.claims),
            Answer::Reconcile(Sequenced::Done(page)) => {
                self.hide_rows(&mut page.lease_status, &[]);
                if without("7") {
                    let hidden = self.sim.undelivered(&self.key, &self.node, &[]);
                    page.rows.retain(|(id, _)| !hidden.contains(id));
                }
            }
            Answer::Transfer(Sequenced::Reconcile(lease_status))
            | Answer::Sweep(Sequenced::Reconcile(lease_status))
            | Answer::Reconcile(Sequenced::Reconcile(lease_status))
            | Answer::Renew(lease_status)
            | Answer::Release(lease_status) => self.hide_rows(lease_status, &[]),
            Answer::Settle(settled) => self.hide_rows(&mut settled.lease_status, &[]),
            Answer::Isolate(isolated) => self.hide_rows(&mut isolated.lease_status, &[]),
            Answer::Exhaust(noted) | Answer::Note(noted) => self.hide_rows(&mut noted.lease_status, &[]),
            // Without rule 20 every expired lease looks like that of a node that has stopped.
            Answer::Scan(scanned) if without("20") => {
                let clock = scanned.clock;
                let expired = scanned.leases.iter_mut().filter(|(_, end)| *end <= clock);
                expired.for_each(|(_, end)| *end = Timestamp::EPOCH);
            }
            _ => {}
        }
        Ok(answer)
    }
}

impl Sim {
    /// A link to the memory store, altered in a run that goes without a rule: without `priority` it says that priorities have no effect, and without
    /// `group` that groups have none, and without `borrowed` that what they may borrow is their own.
    pub(super) fn link(self: &Arc<Self>, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        let ageing = if without("priority") { Duration::ZERO } else { options.ageing };
        let group_concurrency = options.group_concurrency.filter(|_| !without("group"));
        let (own, group_burst) = if without("borrowed") { (options.group_burst, 0) } else { (0, options.group_burst) };
        let group_concurrency = group_concurrency.map(|jobs| jobs + own);
        let options = LinkOptions { counts: false, ageing, group_concurrency, group_burst, ..options };
        let inner: Arc<dyn Link> = if self.is_file() {
            Arc::new(FileLink { sim: Arc::clone(self), key: topic.clone(), node: node.clone(), options })
        } else {
            self.store().link_with(topic, node, options)
        };
        if !is_any_away() {
            return inner;
        }
        Arc::new(AlteredLink { sim: Arc::clone(self), inner, node: node.clone(), key: topic.clone() })
    }

    /// A producer of the store.
    pub(super) fn producer(self: &Arc<Self>, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        if self.is_file() {
            return Arc::new(FileProducer { sim: Arc::clone(self), key: topic.clone(), producer: producer.clone() });
        }
        self.store().producer(topic, producer)
    }

    /// Prepares the store for a run that goes without a rule.
    pub(super) fn prepare_rules(&self) {
        if without("9") {
            self.keys.iter().for_each(|key| self.count_fences(key));
        }
    }

    /// Rows of a node whose claims it has neither received nor finds among these.
    fn undelivered(&self, key: &TopicKey, node: &NodeId, claims: &[Claim]) -> Vec<JobId> {
        let (view, checker) = (self.store().view(key), self.checker_of(key));
        let checker = lock(&checker);
        let is_hidden = |(id, job): &(&JobId, &JobView)| {
            let Some(row) = job.row.as_ref().filter(|row| row.node == *node) else { return false };
            !checker.has_received(node, id, row.token.fence) && !claims.iter().any(|claim| claim.id == **id)
        };
        view.jobs.iter().filter(is_hidden).map(|(id, _)| id.clone()).collect()
    }

    /// Without rule 9 fences come from a counter: the store claims one job while its clock is ahead by years, so every later
    /// fence is only one more than the one before. The job is gone before the run begins.
    fn count_fences(&self, key: &TopicKey) {
        const YEARS: i64 = 10 * 365 * 24 * 3_600;
        let id = JobId::new("counted").expect("it is a valid id");
        let job = NewJob::new(id.clone(), Record::new(&Metadata::default(), Codec::Json, b"0"));
        let node = NodeId::new("counting");
        let link = self.store().link(key, &node);
        let producer = self.store().producer(key, &ProducerId::new("counting"));
        let lease = NodeSettings::default().lease;
        self.clock.skew.store(YEARS * SECOND as i64, Relaxed);
        let count = || {
            answer_of(producer.add(Numbered { number: 1, items: vec![job] }))?;
            self.clock.skew.fetch_add(SECOND as i64, Relaxed);
            let Sequenced::Reconcile(known) = answer_of(link.step(transfer(Sequence::default(), lease)))? else {
                return Ok(());
            };
            let page = answer_of(link.step(Reconcile { last_seen: known.sequence, after: None, limit: 1 }))?;
            let Sequenced::Done(page) = page else { return Ok(()) };
            let Sequenced::Done(done) = answer_of(link.step(transfer(page.lease_status.sequence, lease)))? else {
                return Ok(());
            };
            let last_seen = done.lease_status.sequence;
            let outcomes = done.claims.iter().map(|claim| claim.outcome(Change::Ack)).collect();
            answer_of(link.step(Settle { last_seen, lease, bytes: DEFAULT_BYTES, outcomes }))?;
            answer_of(link.step(Release { last_seen })).map(drop)
        };
        let counted: Result<_, StoreError> = count();
        self.clock.skew.store(0, Relaxed);
        debug_assert!(counted.is_ok(), "the memory store cannot fail: {counted:?}");
    }

    /// Without `replaced` a replacement does not wait: the run that it would wait for loses its job at once.
    pub(super) fn end_replaced_runs(&self, key: &TopicKey, jobs: &[NewJob]) {
        let view = self.store().view(key);
        let replaced = jobs.iter().filter(|job| job.on_duplicate == OnDuplicate::Replace);
        for (id, row) in replaced.filter_map(|job| Some((&job.id, view.jobs.get(&job.id)?.row.as_ref()?))) {
            let outcome = Outcome { id: id.clone(), token: row.token, change: Change::Ack, metadata: None };
            // No node has this sequence number, so nothing is renewed.
            let settle = Settle {
                last_seen: Sequence::default(),
                lease: Duration::ZERO,
                bytes: DEFAULT_BYTES,
                outcomes: vec![outcome],
            };
            drop(self.store().link(key, &row.node).step(settle));
        }
    }

    /// Without rule 13 a delete, cancel or ack of a running job becomes a requeue, which a running job ignores. Returns the
    /// places of these commands.
    pub(super) fn defuse(&self, key: &TopicKey, commands: &mut [Command]) -> Vec<usize> {
        let view = self.store().view(key);
        let runs = |id: &JobId| view.jobs.get(id).is_some_and(|job| job.state == State::Running);
        let mut places = Vec::new();
        for (place, command) in commands.iter_mut().enumerate() {
            if command.verb != CommandKind::Requeue && runs(&command.id) {
                command.verb = CommandKind::Requeue;
                places.push(place);
            }
        }
        places
    }

    /// Without rule 8 no node finds this node's lease any more.
    pub(super) fn hide(&self, key: &TopicKey, node: &NodeId) {
        lock(&self.hidden).insert((key.clone(), node.clone()));
    }

    pub(super) fn is_hidden(&self, key: &TopicKey, node: &NodeId) -> bool {
        without("8") && lock(&self.hidden).contains(&(key.clone(), node.clone()))
    }

    /// Without rule 2 a reclaim is two steps: the rows go first, and the reclaimer dies before it puts the jobs back.
    pub(super) fn split_reclaim(&self, key: &TopicKey, node: &NodeId) {
        let (back, checker) = (self.store().view(key), self.checker_of(key));
        let held: Vec<_> =
            lock(&checker).before.jobs.iter().filter(|(_, job)| holds(job, node)).map(|(id, _)| id.clone()).collect();
        let gone = held.into_iter().filter(|id| back.jobs.get(id).is_some_and(|job| !holds(job, node)));
        let items = gone.map(|id| Command::new(CommandKind::Delete, id)).collect();
        let producer = self.store().producer(key, &ProducerId::new("between"));
        drop(producer.command(Numbered { number: self.next_number(), items }));
    }
}

const fn transfer(last_seen: Sequence, lease: Duration) -> Transfer {
    Transfer { fallback: Duration::from_secs(1), ..Transfer::new(last_seen, 1, lease) }
}

fn holds(job: &JobView, node: &NodeId) -> bool {
    job.row.as_ref().is_some_and(|row| row.node == *node)
}

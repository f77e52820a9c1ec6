//! A store on a simulated disk, and the requests that the tests send.

use std::sync::Arc;
use std::time::Duration;

use dq::job::{AppName, Codec, Isolation, JobId, Metadata, NodeId, ProducerId, Record, Sequence, TopicKey, TopicName};
use dq::store::file::{Commits, FileOptions, FileStore};
use dq::store::step::{
    Change, Claim, DEFAULT_BYTES, Isolate, Isolated, LeaseStatus, Outcome, Reconcile, Renew, Sequenced, Settle,
    Settled, Transfer, Transferred,
};
use dq::store::{
    AddOutcome, BatchAnswer, Command, CommandKind, CommandOutcome, FindingCode, JobCopy, Link, LinkOptions, NewJob,
    Numbered, OnDuplicate, PageRequest, Pending, Producer, Store, StoreError, Stored,
};
use dq::testing::ManualClock;
use dq_testing::disk::SimulatedDisk;
use futures_util::FutureExt;

pub const START: u64 = 1_763_000_000_000_000;

/// An open store whose commits are by hand, unless the test says otherwise.
pub struct Rig {
    pub clock: Arc<ManualClock>,
    pub store: Arc<FileStore>,
    producer: Arc<dyn Producer>,
    link: Arc<dyn Link>,
    number: u64,
    last_seen: Sequence,
}

pub fn key() -> TopicKey {
    TopicKey { app: AppName::new("app").unwrap(), topic: TopicName::new("topic").unwrap() }
}

pub fn job(id: &str, payload: &str) -> NewJob {
    let record = Record::new(&Metadata::default(), Codec::Json, payload.as_bytes());
    NewJob { on_duplicate: OnDuplicate::Replace, ..NewJob::new(JobId::new(id).unwrap(), record) }
}

/// A store that is not open yet, whose files and snapshots are small.
pub fn store_on(disk: &SimulatedDisk, clock: &Arc<ManualClock>) -> FileStore {
    FileStore::on(Arc::new(disk.clone()), clock.clone()).with(|options| {
        options.commits = Commits::ByHand;
        options.segment_bytes = 16 << 10;
        options.snapshot_bytes = 6_000;
    })
}

/// The answer, which must be there.
pub fn now<T>(pending: impl Future<Output = T>) -> T {
    pending.now_or_never().expect("the answer is there")
}

/// The answer, which another thread gives.
pub fn awaited<T>(pending: impl Future<Output = T>) -> T {
    futures_executor::block_on(pending)
}

/// All copies that a store has, by their ids, as often as they are there.
pub fn copies(store: &dyn Store) -> Vec<JobCopy> {
    let mut copies = Vec::new();
    for (broadcasts, state) in JobCopy::parts() {
        let request = PageRequest { state, after: None, limit: 1_000, bytes: 1 << 20 };
        let page = awaited(store.export(&key(), request, broadcasts)).unwrap();
        assert!(page.next.is_none());
        copies.extend(page.copies);
    }
    copies
}

/// Whether the answer must still be waited for.
pub fn waits<T: Send + 'static>(pending: &mut Pending<T>) -> bool {
    let Some(answer) = pending.now_or_never() else { return true };
    *pending = Box::pin(std::future::ready(answer));
    false
}

impl Rig {
    pub fn try_open(disk: &SimulatedDisk, with: impl FnOnce(&mut FileOptions)) -> Result<Self, StoreError> {
        let clock = Arc::new(ManualClock::at(START));
        let store = store_on(disk, &clock).with(with);
        now(store.open())?;
        Ok(Self::of(store, clock))
    }

    pub fn open(disk: &SimulatedDisk) -> Self {
        Self::try_open(disk, |_| {}).unwrap()
    }

    /// A new store on a new disk.
    pub fn new() -> (SimulatedDisk, Self) {
        let disk = SimulatedDisk::new();
        let rig = Self::open(&disk);
        (disk, rig)
    }

    /// A new producer and a new node of an open store.
    pub fn of(store: FileStore, clock: Arc<ManualClock>) -> Self {
        let producer = store.producer(&key(), &ProducerId::new("p"));
        let link = store.link(&key(), &NodeId::new("n"));
        Self { clock, store: Arc::new(store), producer, link, number: 0, last_seen: Sequence(0) }
    }

    /// The same, for a node whose code says this rate.
    pub fn with_rate(mut self, rate: &str) -> Self {
        let options = LinkOptions { rate: Some(rate.parse().unwrap()), ..LinkOptions::default() };
        self.link = self.store.link_with(&key(), &NodeId::new("n"), options);
        self
    }

    pub fn add_all(&mut self, items: Vec<NewJob>) -> Pending<BatchAnswer<AddOutcome>> {
        self.number += 1;
        self.producer.add(Numbered { number: self.number, items })
    }

    pub fn add(&mut self, id: &str) -> Pending<BatchAnswer<AddOutcome>> {
        self.add_all(vec![job(id, "1")])
    }

    pub fn delete(&mut self, id: &str) -> Pending<BatchAnswer<CommandOutcome>> {
        self.number += 1;
        let items = vec![Command::new(CommandKind::Delete, JobId::new(id).unwrap())];
        self.producer.command(Numbered { number: self.number, items })
    }

    /// What endangers the store.
    pub fn dangers(&self) -> Vec<FindingCode> {
        now(self.store.dangers()).unwrap().into_iter().map(|danger| danger.code).collect()
    }

    fn enter(&mut self) {
        if self.last_seen == Sequence(0) {
            let request = Reconcile { last_seen: self.last_seen, after: None, limit: 1_000 };
            let Sequenced::Done(page) = now(self.link.step(request)).unwrap() else { panic!("a reconcile is done") };
            self.last_seen = page.lease_status.sequence;
        }
    }

    /// Asks for a claim; the answer goes to [`claimed`](Self::claimed).
    pub fn transfer(&mut self, limit: usize) -> Pending<Sequenced<Transferred>> {
        self.enter();
        self.link.step(Transfer::new(self.last_seen, limit, Duration::from_secs(15)))
    }

    pub fn claimed(&mut self, answer: Pending<Sequenced<Transferred>>) -> Result<Vec<Claim>, StoreError> {
        let Sequenced::Done(done) = now(answer)? else { panic!("the sequence number is right") };
        self.last_seen = done.lease_status.sequence;
        Ok(done.claims)
    }

    /// Claims jobs, as is confirmed then.
    pub fn claims(&mut self, limit: usize) -> Vec<Claim> {
        let answer = self.transfer(limit);
        self.store.commit().unwrap();
        self.claimed(answer).unwrap()
    }

    /// The answer to a step that is confirmed with the next commit.
    pub fn confirmed<T>(&self, pending: Pending<T>) -> T {
        self.store.commit().unwrap();
        now(pending).unwrap()
    }

    pub fn settle(&self, outcomes: Vec<(&Claim, Change, Option<Metadata>)>) -> Pending<Settled> {
        let outcomes = outcomes.into_iter();
        let outcomes =
            outcomes.map(|(claim, change, metadata)| Outcome { metadata, ..claim.outcome(change) }).collect();
        let lease = Duration::from_secs(15);
        self.link.step(Settle { last_seen: self.last_seen, lease, bytes: DEFAULT_BYTES, outcomes })
    }

    pub fn renew(&self) -> Pending<LeaseStatus> {
        self.link.step(Renew { last_seen: self.last_seen, lease: Duration::from_secs(15) })
    }

    /// Notes that a claimed job runs in a group.
    pub fn isolate(&self, claim: &Claim) -> Pending<Isolated> {
        let (last_seen, lease) = (self.last_seen, Duration::from_secs(15));
        let runs = vec![(claim.id.clone(), claim.token)];
        self.link.step(Isolate { last_seen, lease, isolation: Some(Isolation::Grouped), runs })
    }

    pub fn link(&self) -> &dyn Link {
        &*self.link
    }

    pub fn get(&self, ids: &[&str]) -> Vec<Option<Stored>> {
        let ids: Vec<_> = ids.iter().map(|id| JobId::new(*id).unwrap()).collect();
        now(self.store.get(&key(), &ids)).unwrap()
    }

    pub fn has(&self, id: &str) -> bool {
        self.get(&[id])[0].is_some()
    }

    /// Adds jobs that are confirmed then.
    pub fn added(&mut self, ids: &[&str]) {
        let pending = self.add_all(ids.iter().map(|id| job(id, "1")).collect());
        self.confirmed(pending);
    }
}

/// The bytes of all files.
pub fn bytes(disk: &SimulatedDisk) -> u64 {
    dq::store::file::disk::Disk::list(disk).unwrap().iter().map(|entry| entry.bytes).sum()
}

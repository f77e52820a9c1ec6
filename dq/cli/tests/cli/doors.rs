//! Every value that a door of a store accepts, at each limit of the format and beside it, survives a step, another opening of the store, an
//! export and an import elsewhere. All doors and all stores accept the same values.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dq::job::{Fence, JobId, NodeId, ProducerId, Sequence, State, TopicKey, TopicName, limits};
use dq::store::file::FileStore;
use dq::store::step::{Change, DEFAULT_BYTES, Outcome, Reconcile, RejoinDue, Sequenced, Settle, Transfer, Verdict};
use dq::store::{
    AddOutcome, BatchAnswer, FollowUpBatch, FollowUpBatches, FollowUpOutcome, Import, JobCopy, MAX_AHEAD, NewJob,
    Numbered, OnDead, OnDuplicate, OutboxEntry, OutboxPosition, SetChange, SetVerb, Store, relay_of,
};
use dq::time::Timestamp;
use dq_tests::file::Folder;
use dq_tests::limits::{Sample, samples};
use dq_tests::redis::RedisServer;

use crate::round_trip::{exported, imported, key, keyspaces, memory};

const MINUTE: Duration = Duration::from_secs(60);
/// The topics whose jobs are compared. The home of the set is none of them, because an open set is in no export.
const COMPARED: [&str; 10] =
    ["--topic", "add", "--topic", "set", "--topic", "relay", "--topic", "import", "--topic", "fences"];

fn topic(name: &str) -> TopicKey {
    TopicKey { topic: TopicName::new(name).unwrap(), ..key() }
}

/// A job with a sample. None if the id is not valid.
fn job(sample: &Sample) -> Option<NewJob> {
    Some(sample.job(JobId::new(sample.id()).ok()?))
}

fn packed(target: &TopicKey, batch: &FollowUpBatch) -> dq::store::Packed {
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(target.topic.clone(), batch);
    follow_ups.parts()[0].1.clone()
}

/// The doors of a store, and which values they have let in.
struct Doors<'a> {
    store: &'a dyn Store,
    clock: u64,
    accepted: BTreeSet<String>,
}

impl Doors<'_> {
    fn note(&mut self, door: &str, sample: &Sample, is_in: bool) {
        if is_in {
            self.accepted.insert(format!("{door} {}", sample.name()));
        }
    }

    async fn add(&mut self, number: u64, sample: &Sample, new: NewJob) {
        let producer = self.store.producer(&topic("add"), &ProducerId::new("p"));
        let added = producer.add(Numbered { number, items: vec![new] }).await;
        self.note("add", sample, matches!(added, Ok(BatchAnswer::Done(done)) if done == [AddOutcome::Added]));
    }

    async fn join(&mut self, number: u64, sample: &Sample, new: NewJob) {
        let what = SetVerb::Add(OnDead::Count, vec![(topic("set").topic, new)]);
        let change = SetChange { set: JobId::new("s").unwrap(), what };
        let answer = self.store.producer(&topic("home"), &ProducerId::new("p")).job_set(number, change).await;
        self.note("set", sample, answer.is_ok());
    }

    /// Follow-ups of the topic `source`, as a node relays them.
    async fn relay(&mut self, target: &str, sample: &Sample, (position, after): (u64, u64), what: &FollowUpBatch) {
        let to = topic(target);
        let batch = packed(&to, what);
        let [position, after] = [position, after].map(OutboxPosition::clock);
        let entry = OutboxEntry { target: to.topic.clone(), position, after, batch };
        let answer = self.store.producer(&to, &relay_of(&topic("source").topic)).relay(entry).await;
        self.note("relay", sample, matches!(answer, Ok(BatchAnswer::Done(done)) if done == [FollowUpOutcome::Done]));
    }

    async fn import(&mut self, number: u64, sample: &Sample, copy: JobCopy, fence: u64) {
        let import = Import { copies: vec![copy], on_duplicate: OnDuplicate::Replace, fence: Fence(fence) };
        let to = topic(if fence > 0 { "fences" } else { "import" });
        let answer = self.store.producer(&to, &ProducerId::new("p")).import(number, import).await;
        self.note("import", sample, answer.is_ok());
    }

    /// Brings the members of the set to their topic.
    async fn bring_members(&self) {
        let home = topic("home");
        let mut after = None;
        loop {
            let target = after.map(|position| (topic("set").topic, position));
            let behind = target.as_ref().map(|(target, position)| (target, *position));
            let entries = self.store.follow_ups(&home, behind, 1).await.unwrap();
            let Some(entry) = entries.into_iter().find(|entry| entry.target == topic("set").topic) else { return };
            after = Some(entry.position.at);
            let answer = self.store.producer(&topic("set"), &relay_of(&home.topic)).relay(entry).await.unwrap();
            assert!(matches!(answer, BatchAnswer::Done(done) if done == [FollowUpOutcome::Done]));
        }
    }

    async fn knock(&mut self) {
        let (mut number, mut position) = (0, self.clock);
        for sample in samples() {
            number += 1;
            let at = if sample.limit == limits::TIME { sample.size } else { self.clock / 1_000 };
            let Some(new) = job(&sample) else { continue };
            let state = if number % 2 == 0 { State::Dead } else { State::Delayed };
            let at = Timestamp::from_millis(at);
            let taken_until = Some(at).filter(|_| sample.limit == limits::TIME);
            let copy = JobCopy { taken_until, ..JobCopy::new(new.id.clone(), new.record.clone(), state, at) };
            match sample.limit {
                limits::POSITION => {
                    let target = format!("at-{}", sample.size);
                    self.relay(&target, &sample, (sample.size, 0), &FollowUpBatch::Delete(vec![new.id])).await;
                    continue;
                }
                limits::FENCE => {
                    self.import(number, &sample, copy, sample.size).await;
                    continue;
                }
                limits::TIME => {}
                _ => {
                    self.add(number, &sample, new.clone()).await;
                    self.join(number, &sample, new.clone()).await;
                    let add = FollowUpBatch::Add(vec![new]);
                    self.relay("relay", &sample, (position + 1, 0), &add).await;
                    position += 1;
                }
            }
            self.import(number, &sample, copy, 0).await;
        }
        // As far ahead of the clock as a door lets in.
        let fence = Sample { limit: limits::FENCE, size: self.clock + MAX_AHEAD };
        let (id, at) = (JobId::new("ahead").unwrap(), Timestamp::from_millis(1));
        let copy = JobCopy::new(id, fence.record(), State::Delayed, at);
        self.import(number + 1, &fence, copy, fence.size).await;
        assert!(self.accepted.remove(&format!("import {}", fence.name())), "a day ahead is not too far");
        self.bring_members().await;
    }

    /// A node claims all that is due, and gives each job another outcome.
    async fn take_a_step(&self) {
        for name in ["add", "set", "relay", "import", "fences"] {
            let link = self.store.link(&topic(name), &NodeId::new("n"));
            let reconcile = Reconcile { last_seen: Sequence(0), after: None, limit: 10 };
            let Sequenced::Done(page) = link.step(reconcile).await.unwrap() else {
                panic!("a first reconcile is let in")
            };
            let (mut last_seen, mut claimed, mut is_over) = (page.lease_status.sequence, Vec::new(), false);
            while !is_over {
                let transfer = Transfer::new(last_seen, 100, MINUTE);
                let Sequenced::Done(some) = link.step(transfer).await.unwrap() else { panic!("the number is right") };
                last_seen = some.lease_status.sequence;
                is_over = some.claims.is_empty();
                claimed.extend(some.claims);
            }
            let changes = [
                Change::Retry(Duration::from_millis(limits::DELAY.most)),
                Change::Rejoin(RejoinDue::AsAdded),
                Change::Park,
                Change::Dead,
                Change::Rollback,
            ];
            for (claim, change) in claimed.into_iter().zip(changes.into_iter().cycle()) {
                let metadata = claim.record.metadata().unwrap();
                let metadata = (change != Change::Rollback).then_some(metadata);
                let outcomes = vec![Outcome { id: claim.id.clone(), token: claim.token, change, metadata }];
                let settled =
                    link.step(Settle { last_seen, lease: MINUTE, bytes: DEFAULT_BYTES, outcomes }).await.unwrap();
                assert_eq!(settled.verdicts, [Verdict::Done], "{name} {}", claim.id);
            }
        }
    }
}

/// The lines of an export that have jobs, without those whose id was taken for no time: it may be free by the import.
fn jobs(text: &str) -> Vec<&str> {
    let is_compared = |line: &&str| line.starts_with("{\"job\"") && !line.contains("\"id\":\"unique-0\"");
    let mut jobs: Vec<_> = text.lines().filter(is_compared).collect();
    jobs.sort_unstable();
    jobs
}

/// Writes, takes a step, opens the store again, exports, imports elsewhere and compares. Returns which doors let in what.
async fn survives(opened: impl AsyncFn() -> Arc<dyn Store>) -> BTreeSet<String> {
    let store = opened().await;
    let clock = store.counts(&topic("add")).await.unwrap().clock.as_millis() * 1_000;
    let mut doors = Doors { store: &*store, clock, accepted: BTreeSet::new() };
    doors.knock().await;
    doors.take_a_step().await;
    let accepted = doors.accepted;
    let before = exported(&*store, &COMPARED).await;
    drop(store);
    let again = opened().await;
    let after = exported(&*again, &COMPARED).await;
    assert_eq!(jobs(&before), jobs(&after), "another opening changes nothing");
    // A position at its limit leaves room for those that follow.
    for size in [limits::POSITION.least, limits::POSITION.most] {
        let to = topic(&format!("at-{size}"));
        assert_eq!(again.arrived(&to, &topic("source").topic).await.unwrap().at, size);
        let id = JobId::new("next").unwrap();
        let batch = packed(&to, &FollowUpBatch::Delete(vec![id]));
        let [position, after] = [size + 1, size].map(OutboxPosition::clock);
        let entry = OutboxEntry { target: to.topic.clone(), position, after, batch };
        let answer = again.producer(&to, &relay_of(&topic("source").topic)).relay(entry).await.unwrap();
        assert_eq!(answer, BatchAnswer::Done(vec![FollowUpOutcome::Done]));
    }
    let elsewhere = memory();
    imported(&*elsewhere, &after, "p").await;
    assert_eq!(jobs(&exported(&*elsewhere, &COMPARED).await), jobs(&after));
    accepted
}

/// What all doors should let in.
fn within() -> BTreeSet<String> {
    let mut within = BTreeSet::new();
    for sample in samples().into_iter().filter(|sample| JobId::new(sample.id()).is_ok()) {
        let doors: &[&str] = match sample.limit {
            limits::POSITION => &["relay"],
            limits::FENCE | limits::TIME => &["import"],
            _ if !sample.is_of_record() => &["add", "set", "relay"],
            _ => &["add", "set", "relay", "import"],
        };
        let kept = sample.limit == limits::POSITION && sample.is_kept();
        // Their clocks refuse a fence or an order at the limit.
        let is_ahead =
            |door: &str| door == "import" && sample.size == limits::FENCE.most && sample.limit != limits::POSITION;
        let lets_in = |door: &&&str| (sample.is_within() || kept) && !is_ahead(door);
        within.extend(doors.iter().filter(lets_in).map(|door| format!("{door} {}", sample.name())));
        if !sample.is_of_record() && !matches!(sample.limit, limits::POSITION | limits::FENCE | limits::TIME) {
            // A copy has none of these, so an import brings a plain job.
            within.insert(format!("import {}", sample.name()));
        }
    }
    within
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_value_that_a_door_accepts_survives_a_step_an_opening_and_an_export() {
    let wanted = within();
    let store = memory();
    assert_eq!(survives(async || Arc::clone(&store)).await, wanted);

    let folder = Folder::unmade();
    let open = async || -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(FileStore::new(folder.path()));
        store.prepare().await.unwrap();
        store
    };
    assert_eq!(survives(open).await, wanted);

    let server = RedisServer::start();
    let store = keyspaces(&server)();
    assert_eq!(survives(async || Arc::clone(&store)).await, wanted);
}

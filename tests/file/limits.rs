//! What a journal may have that no dq wrote into it: jobs over a limit of the format, and fences that no dq gives out.

use std::sync::Arc;
use std::time::Duration;

use dq::environment::TokioClock;
use dq::job::{AppName, Codec, Fence, JobId, Metadata, ProducerId, Record, TopicKey, TopicName, limits};
use dq::prelude::*;
use dq::store::file::journal::{Frame, Holder, Journal, Options, Position};
use dq::store::file::{Commits, FileStore, check_on};
use dq::store::memory::MemoryStore;
use dq::store::{
    BatchAnswer, Due, FollowUpBatch, FollowUpBatches, Import, NewJob, Numbered, OnDuplicate, OutboxEntry,
    OutboxPosition, Store, StoreError, relay_of,
};
use dq::testing::Harness;
use dq_testing::disk::SimulatedDisk;
use dq_tests::journaled::Changes;
use dq_tests::limits::{Sample, samples};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::rig::{self, Rig, job};

#[derive(Debug, Serialize, Deserialize, DelayJob)]
#[job(topic = "t")]
struct Text(String);

#[delay_listener(register = false)]
async fn run(job: Job<Text>, ran: &UnboundedSender<String>) -> Result<(), JobError> {
    Ok(ran.send(job.id().to_string())?)
}

fn key() -> TopicKey {
    TopicKey { app: AppName::new("test").unwrap(), topic: TopicName::new("t").unwrap() }
}

/// A record within all limits that has so many bytes.
fn record_of(length: usize) -> Record {
    let headers = vec![("h".to_owned(), "y".repeat(length.saturating_sub(1_024).min(5_000)))];
    let metadata = if length < 6_100 { Metadata::default() } else { Metadata { headers, ..Metadata::default() } };
    let empty = Record::new(&metadata, Codec::Json, b"").as_bytes().len();
    Record::new(&metadata, Codec::Json, &vec![b'z'; length - empty])
}

/// The changes of an add of this job, which a store would refuse: those of another job whose record has as many bytes.
async fn changes_of(sample: &Sample) -> Vec<u8> {
    let record = sample.record();
    let other = record_of(record.as_bytes().len());
    let changes = Arc::<Changes>::default();
    let store = MemoryStore::journaled(Arc::new(TokioClock::new()), changes.clone());
    let id = JobId::new("0".repeat(sample.id().len())).unwrap();
    let new = NewJob { due: Due::At(dq::time::Timestamp::from_millis(1)), ..NewJob::new(id, other.clone()) };
    let added = store.producer(&key(), &ProducerId::new("p")).add(Numbered { number: 1, items: vec![new] }).await;
    assert!(matches!(added, Ok(BatchAnswer::Done(_))), "{added:?}");
    let mut bytes = changes.bytes();
    let mut put = |old: &[u8], new: &[u8]| {
        let at = bytes.windows(old.len()).position(|window| window == old).expect("the change has it");
        bytes[at..at + old.len()].copy_from_slice(new);
    };
    put(other.as_bytes(), record.as_bytes());
    put("0".repeat(sample.id().len()).as_bytes(), sample.id().as_bytes());
    bytes
}

/// Writes a journal that no dq would write.
fn write(disk: &SimulatedDisk, frames: &[Vec<u8>], reserved: u64) {
    let options = Options::new(7, Holder::default());
    let nothing = |_: Position, _: Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::new(disk.clone()), &options, nothing).unwrap();
    let topic = journal.topic(&key().to_string()).unwrap();
    journal.reserve(reserved).unwrap();
    for frame in frames {
        journal.append(topic, 1, frame).unwrap();
        journal.commit().unwrap();
    }
    journal.seal().unwrap();
}

fn store_on(disk: &SimulatedDisk) -> Arc<FileStore> {
    let store = FileStore::on(Arc::new(disk.clone()), Arc::new(TokioClock::new()));
    Arc::new(store.with(|options| options.commits = Commits::AtOnce))
}

#[tokio::test(start_paused = true)]
async fn a_job_of_a_journal_that_is_over_a_limit_is_named_by_the_check_and_dead_with_its_payload() {
    let wanted = |sample: &Sample| sample.is_of_record() && sample.limit != limits::ID;
    for sample in samples().into_iter().filter(wanted) {
        let disk = SimulatedDisk::default();
        write(&disk, &[changes_of(&sample).await], 1);
        let is_of_store = !matches!(sample.limit.name, "INTERVAL" | "SCHEDULE_PAYLOAD" | "CONTROLS");
        let over: Vec<_> = check_on(&disk).unwrap().over_limit.into_iter().map(|(_, id, _)| id.to_string()).collect();
        let runs = sample.is_kept() || sample.limit == limits::CONTROLS;
        let named = if sample.is_kept() || !is_of_store { vec![] } else { vec![sample.id()] };
        assert_eq!(over, named, "{}", sample.name());
        let (sender, mut ran) = unbounded_channel::<String>();
        let dq = Harness::start_on(store_on(&disk), 7, |factory| factory.provide(sender).listener::<run>()).await;
        if runs {
            let got = ran.recv().await.unwrap();
            let name = sample.id().strip_prefix("dq:schedule:").map(|name| format!("dq:tick:{name}@"));
            assert!(got.starts_with(&name.unwrap_or(sample.id())), "{got} for {}", sample.name());
            continue;
        }
        let topic = dq.provider().topic("t").unwrap();
        let dead = loop {
            let found = topic.get(sample.id()).await.unwrap();
            match found.filter(|job| job.state() == dq::job::State::Dead) {
                Some(dead) => break dead,
                None => dq.advance(Duration::from_millis(1)).await,
            }
        };
        assert_eq!(dead.raw_payload().unwrap().1, sample.record().payload().unwrap().1, "{}", sample.name());
        assert_eq!(dead.details.unwrap().cause, Some(dq::job::Cause::Decode), "{}", sample.name());
    }
}

/// A process that opens the directory, and closes it at its end.
fn open(disk: &SimulatedDisk) -> Rig {
    Rig::try_open(disk, |options| options.commits = Commits::AtOnce).unwrap()
}

/// The fence of a claim of a new job.
fn claimed(rig: &mut Rig, id: &str) -> u64 {
    rig.added(&[id]);
    rig.claims(1)[0].token.fence.0
}

#[test]
fn a_reservation_at_the_end_of_the_numbers_stops_no_topic_and_the_next_fence_follows_the_clock() {
    for (reserved, is_large, grows) in [
        ((1 << 52) - 1, false, true),
        (1 << 52, false, false),
        ((1 << 52) + 1, true, false),
        (u64::MAX - 1, true, false),
        (u64::MAX, true, false),
    ] {
        let disk = SimulatedDisk::default();
        write(&disk, &[], reserved);
        assert_eq!(check_on(&disk).unwrap().large_fence.is_some(), is_large, "{reserved}");
        let fence = claimed(&mut open(&disk), "a");
        assert_eq!(fence == reserved.wrapping_add(1), grows, "{fence} after {reserved}");
        assert!(grows || fence < 1 << 52, "{fence} after {reserved}");
        // The next process continues from there, and follows the clock again after the last number.
        let mut next = open(&disk);
        next.clock.advance(Duration::from_secs(1));
        assert_eq!(claimed(&mut next, "b") > fence, !grows, "{reserved}");
    }
}

/// A store that a journal of an earlier version opens: it took numbers that no clock reaches, of any app.
#[tokio::test]
async fn a_directory_with_numbers_over_their_limits_opens_without_them_and_with_all_else() {
    let changes = Arc::<Changes>::default();
    let writer = MemoryStore::journaled(Arc::new(TokioClock::new()), changes.clone());
    let position = (1 << 40) + 7_u64;
    let written = (1 << 39) + 9;
    let mut follow_ups = FollowUpBatches::default();
    let job = NewJob { due: Due::At(dq::time::Timestamp::from_millis(1)), ..job("x", "1") };
    follow_ups.push(key().topic, &FollowUpBatch::Add(vec![job]));
    let batch = follow_ups.parts()[0].1.clone();
    let (at, after) = (OutboxPosition { at: position, written }, OutboxPosition::START);
    let entry = OutboxEntry { target: key().topic, position: at, after, batch };
    writer.producer(&key(), &relay_of(&key().topic)).relay(entry).await.unwrap();
    let sound = changes.bytes();
    let number = |number: u64| {
        let (mut left, mut bytes) = (number, Vec::new());
        while left >= 1 << 7 {
            bytes.push(left as u8 | 1 << 7);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    };
    for other in [limits::POSITION.last(), limits::POSITION.last() + 1, i64::MAX as u64, u64::MAX] {
        let (old, new) = (number(position), number(other));
        let at = sound.windows(old.len()).rposition(|window| window == old).expect("the position is there");
        let bytes = [&sound[..at], &new, &sound[at + old.len()..]].concat();
        let disk = SimulatedDisk::default();
        write(&disk, &[bytes], 1);
        check_on(&disk).unwrap();
        let store = store_on(&disk);
        store.prepare().await.unwrap();
        let arrived = store.arrived(&key(), &key().topic).await.unwrap();
        let is_kept = limits::POSITION.check_kept(other).is_ok();
        assert_eq!(arrived.at, if is_kept { other } else { 0 }, "it is set aside");
        assert_eq!(store.counts(&key()).await.unwrap().ready, 1, "{other}");
        drop(store);
        store_on(&disk).prepare().await.unwrap();
    }
}

/// A position that no clock reaches is refused, so nothing of it comes to the journal.
#[tokio::test]
async fn a_directory_opens_after_it_has_refused_positions_and_fences_that_no_clock_reaches() {
    let (disk, key) = (SimulatedDisk::default(), rig::key());
    let mut rig = open(&disk);
    let mut follow_ups = FollowUpBatches::default();
    follow_ups.push(key.topic.clone(), &FollowUpBatch::Add(vec![job("x", "1")]));
    let batch = follow_ups.parts()[0].1.clone();
    for position in [i64::MAX as u64, u64::MAX] {
        let (position, after) = (OutboxPosition::clock(position), OutboxPosition::START);
        let entry = OutboxEntry { target: key.topic.clone(), position, after, batch: batch.clone() };
        let refused = rig.store.producer(&key, &relay_of(&key.topic)).relay(entry).await;
        assert!(matches!(refused, Err(StoreError::OverLimit { .. })), "{refused:?}");
    }
    let import = Import { copies: Vec::new(), on_duplicate: OnDuplicate::Keep, fence: Fence(limits::FENCE.last()) };
    assert!(rig.store.producer(&key, &ProducerId::new("i")).import(1, import).await.is_err());
    assert!(claimed(&mut rig, "a") < 1 << 52);
    drop(rig);
    assert!(claimed(&mut open(&disk), "b") < 1 << 52);
}

//! A limit of the memory that jobs may take.

use std::time::Duration;

use dq::job::{JobId, Metadata, ProducerId};
use dq::store::file::FileOptions;
use dq::store::step::{Change, Tick};
use dq::store::{
    BatchAnswer, ChangeKind, ChangeVerdict, FindingCode, JobChange, MemoryUse, Numbered, Store, StoreError,
};
use dq_testing::disk::SimulatedDisk;

use crate::node::{Work, start};
use crate::rig::{Rig, job, key, now};

const LIMIT: u64 = 30_000;

fn limited(limit: u64) -> impl FnOnce(&mut FileOptions) {
    move |options| options.max_memory = Some(limit)
}

fn used(rig: &Rig) -> MemoryUse {
    rig.store.memory_use().expect("the store is open")
}

/// Fills a store with jobs of a thousand bytes. Returns how many there are, and why the next one was refused.
fn fill(rig: &mut Rig) -> (usize, StoreError) {
    for number in 0..500 {
        let added = rig.add_all(vec![job(&number.to_string(), &"1".repeat(1_000))]);
        rig.store.commit().unwrap();
        if let Err(refused) = now(added) {
            return (number, refused);
        }
    }
    panic!("there is a limit")
}

#[test]
fn adds_beyond_the_memory_limit_are_refused_until_jobs_end_and_outcomes_never() {
    let mut rig = Rig::try_open(&SimulatedDisk::new(), limited(LIMIT)).unwrap();
    let (added, refused) = fill(&mut rig);
    assert!((18..=24).contains(&added), "{added} jobs of about 1,350 bytes");
    assert!(matches!(refused, StoreError::Full { .. }) && refused.nothing_done(), "{refused}");
    assert!(refused.to_string().contains("raise `max_memory`, or wait until jobs end"), "{refused}");
    let claims = rig.claims(added);
    assert_eq!(claims.len(), added, "claims go on");
    // A retry with a long error and a tick with a new job make the store larger, and are never refused.
    let metadata = Metadata { error: Some("e".repeat(900)), ..Metadata::default() };
    let new = job("new", &"1".repeat(5_000));
    let tick = Tick {
        jobs: vec![dq::store::step::TickJob {
            id: new.id.clone(),
            record: new.record.clone(),
            due: dq::time::Timestamp::EPOCH,
            deliver: new.deliver,
        }],
        schedule: new.record.clone(),
        unless: None,
        next: None,
    };
    let before = used(&rig).bytes;
    let settled = rig.settle(vec![
        (&claims[0], Change::Retry(Duration::from_secs(60)), Some(metadata)),
        (&claims[1], Change::Tick(Box::new(tick)), None),
    ]);
    rig.confirmed(settled);
    assert!(used(&rig).bytes > before + 4_000 && used(&rig).bytes > LIMIT, "{} after {before}", used(&rig));
    let settled = rig.settle(claims[2..].iter().map(|claim| (claim, Change::Ack, None)).collect());
    rig.confirmed(settled);
    rig.added(&["there is room again"]);
    for id in ["0", "new", "there is room again"] {
        let deleted = rig.delete(id);
        rig.confirmed(deleted);
    }
    assert_eq!(used(&rig).bytes, 0, "all that was counted in is counted out");
}

#[test]
fn an_update_is_refused_only_if_it_grows() {
    let mut rig = Rig::try_open(&SimulatedDisk::new(), limited(LIMIT)).unwrap();
    fill(&mut rig);
    let producer = rig.store.producer(&key(), &ProducerId::new("other"));
    let mut number = 0;
    let change = |id: &str, what| JobChange::new(JobId::new(id).unwrap(), what);
    let updated = |length: usize| change("3", ChangeKind::Update(job("3", &"2".repeat(length)).record));
    let mut send = |items| {
        number += 1;
        let changed = producer.change(Numbered { number, items });
        rig.store.commit().unwrap();
        now(changed)
    };
    // What another caller changes in the same batch is done.
    let mixed = send(vec![updated(4_000), change("4", ChangeKind::RunNow), change("3", ChangeKind::RunNow)]);
    let Ok(BatchAnswer::Done(outcomes)) = mixed else { panic!("{mixed:?}") };
    let verdicts: Vec<_> = outcomes.iter().map(|outcome| outcome.verdict).collect();
    assert_eq!(verdicts, [ChangeVerdict::Later, ChangeVerdict::Changed, ChangeVerdict::Later]);
    let alone = send(vec![updated(4_000), change("3", ChangeKind::RunNow)]);
    assert!(matches!(alone, Err(StoreError::Full { .. })), "{alone:?}");
    let mut update = |length| send(vec![updated(length)]);
    assert!(matches!(update(4_000), Err(StoreError::Full { .. })));
    for length in [1_000, 10] {
        let Ok(BatchAnswer::Done(outcomes)) = update(length) else { panic!("{length} bytes fit") };
        assert_eq!(outcomes[0].verdict, ChangeVerdict::Changed);
    }
    update(900).unwrap();
}

#[test]
fn the_doctor_names_the_memory_before_and_after_it_is_full() {
    let mut rig = Rig::try_open(&SimulatedDisk::new(), limited(LIMIT)).unwrap();
    let mut seen = Vec::new();
    for number in 0..LIMIT / 1_350 {
        let added = rig.add_all(vec![job(&number.to_string(), &"1".repeat(1_000))]);
        rig.confirmed(added);
        seen.push(rig.dangers());
    }
    seen.dedup();
    assert_eq!(seen, [vec![], vec![FindingCode::MemoryNearlyFull], vec![FindingCode::MemoryFull]]);
    let text = &now(rig.store.dangers()).unwrap()[0].text;
    assert!(text.starts_with("the jobs take 9") && text.contains("% of `max_memory`"), "{text}");
}

#[test]
fn a_start_that_needs_more_memory_than_it_may_take_names_both_and_changes_nothing() {
    let disk = SimulatedDisk::new();
    // Above a MiB, which the text counts in.
    let limit = 8 << 20;
    let mut rig = Rig::try_open(&disk, |options| {
        (options.max_memory, options.segment_bytes, options.snapshot_bytes) = (Some(limit), 1 << 20, 1 << 40);
    })
    .unwrap();
    let payload = "1".repeat(100_000);
    for number in 0..60 {
        let added = rig.add_all(vec![job(&number.to_string(), &payload)]);
        rig.confirmed(added);
    }
    let need = used(&rig).bytes;
    drop(rig);
    let refused = |limit: u64| Rig::try_open(&disk, limited(limit)).map(drop).unwrap_err().to_string();
    let before = disk.copy();
    let said = format!("needs about {} MiB of memory for its jobs, and `max_memory` is 4 MiB", need >> 20);
    for _ in 0..2 {
        let text = refused(4 << 20);
        assert!(text.contains(&said) && text.contains("`dq export`, which needs little"), "{text}");
    }
    assert_eq!(crate::rig::bytes(&disk), crate::rig::bytes(&before));
    // The last group names the need, so what is before it is not read, and not even damage there is found.
    let damaged = disk.copy();
    let name = format!("journal-{:020}.dq", 0);
    let mut bytes = damaged.file(&name);
    bytes[5_000] ^= 1;
    damaged.put(&name, &bytes);
    let refused_by = |limit: u64| Rig::try_open(&damaged, limited(limit)).map(drop).unwrap_err().to_string();
    assert!(refused_by(4 << 20).contains(&said), "{}", refused_by(4 << 20));
    assert!(refused_by(limit).contains("is damaged at offset"), "{}", refused_by(limit));
    // An eighth more than the limit is no obstacle, because outcomes are never refused.
    drop(Rig::try_open(&disk, limited(need - need / 10)).unwrap());
    // With a snapshot, whose size alone is too much.
    let rig = Rig::try_open(&disk, |options| options.snapshot_bytes = 0).unwrap();
    rig.store.commit().unwrap();
    drop(rig);
    assert!(refused(4 << 20).contains(&said), "{}", refused(4 << 20));
}

#[tokio::test(start_paused = true)]
async fn health_shows_the_memory_that_jobs_take() {
    let (dq, store, _watch) = start(&SimulatedDisk::new(), 1, 0).await;
    let before = dq.health().memory.expect("a store in files counts").bytes;
    dq.provider().add(Work { number: 7 }).after(Duration::from_secs(86_400)).await.unwrap();
    let after = dq.health().memory.unwrap();
    assert!(after.bytes > before && Some(after) == store.memory_use(), "{after}");
    assert_eq!(after.limit.is_some(), cfg!(target_os = "linux"), "three quarters of the machine");
}

//! Directories that are read part by part, and filled without being read.

use std::collections::BTreeMap;
use std::sync::Arc;

use dq::environment::{StoreClock, WallClock};
use dq::job::{Fence, JobId, Metadata, ProducerId, State};
use dq::store::file::journal::Journal;
use dq::store::file::{FileStore, NewDirectory, Parts, check_on};
use dq::store::step::Change;
use dq::store::{BatchAnswer, Import, ImportOutcome, JobCopy, OnDuplicate, Store, StoreError};
use dq::time::Timestamp;
use dq_testing::disk::{Fate, SimulatedDisk};

use crate::rig::{Rig, copies, job, key, now};

/// A directory with jobs in several states, a snapshot, and changes since.
fn mixed() -> SimulatedDisk {
    let (disk, mut rig) = Rig::new();
    for round in 0..12 {
        let ids: Vec<_> = (0..20).map(|n| format!("{round}.{n}")).collect();
        rig.added(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        let claims = rig.claims(9);
        let error = Metadata { error: Some("no".into()), attempts: 3, ..Metadata::default() };
        // Three of each round stay RUNNING.
        let settled = rig.settle(vec![
            (&claims[0], Change::Ack, None),
            (&claims[1], Change::Ack, None),
            (&claims[2], Change::Dead, Some(error.clone())),
            (&claims[3], Change::Park, None),
            (&claims[4], Change::Retry(std::time::Duration::from_secs(9)), Some(error)),
            (&claims[5], Change::Ack, None),
        ]);
        rig.confirmed(settled);
    }
    disk
}

#[test]
fn each_job_is_in_one_part_and_all_parts_are_the_whole() {
    let disk = mixed();
    let whole = Rig::open(&disk.copy());
    let mut expected: BTreeMap<_, _> = copies(&*whole.store).into_iter().map(|copy| (copy.id.clone(), copy)).collect();
    let (mut smallest, mut largest) = (usize::MAX, 0);
    for part in Parts::on(Arc::new(disk), 7).read() {
        let part = copies(&part.unwrap());
        (smallest, largest) = (smallest.min(part.len()), largest.max(part.len()));
        for copy in part {
            let known = expected.remove(&copy.id).unwrap_or_else(|| panic!("{copy:?} is in two parts"));
            assert_eq!(JobCopy { at: known.at, ..copy }, known);
        }
    }
    assert_eq!(expected, BTreeMap::new());
    assert!(smallest > 10 && largest < 60, "{smallest} to {largest} of about 200");
}

#[test]
fn a_damaged_directory_is_refused_in_every_part() {
    let disk = mixed();
    let name = "snapshot-";
    let entries = dq::store::file::disk::Disk::list(&disk).unwrap();
    let name = entries.iter().find(|entry| entry.name.starts_with(name)).unwrap().name.clone();
    let mut bytes = disk.file(&name);
    bytes[5_000] ^= 1;
    disk.put(&name, &bytes);
    let parts = Parts::on(Arc::new(disk), 3);
    let refused: Vec<_> = parts.read().map(|part| part.unwrap_err().to_string()).collect();
    assert!(refused.len() == 3 && refused.iter().all(|why| why.contains("is damaged at offset")), "{refused:?}");
}

fn copy(number: usize, at: u64) -> JobCopy {
    let job = job(&number.to_string(), &number.to_string());
    let state = [State::Delayed, State::Dead, State::Delayed][number % 3];
    let copy = JobCopy::new(job.id, job.record, state, Timestamp::from_millis(at));
    JobCopy { is_broadcast: number % 3 == 2, ..copy }
}

#[test]
fn what_was_imported_into_a_new_directory_is_there_after_a_power_cut_and_above_its_fence() {
    let disk = SimulatedDisk::new();
    let new = NewDirectory::on(Arc::new(disk.clone())).unwrap().expect("it is new");
    let producer = new.producer(&key(), &ProducerId::new("p"));
    // As far ahead of the clock as an import may be, less an hour.
    let fence = Fence(WallClock.micros() + 23 * 3_600_000_000);
    for number in 0..30 {
        let copies = (0..10).map(|n| copy(number * 10 + n, 1_763_000_000_000)).collect();
        let import = Import { copies, on_duplicate: OnDuplicate::Keep, fence };
        let BatchAnswer::Done(outcomes) = now(producer.import(number as u64 + 1, import)).unwrap() else {
            panic!("the batch is not late")
        };
        assert_eq!(outcomes, [ImportOutcome::Added; 10]);
    }
    let is_there = |disk: &SimulatedDisk| {
        let counts = check_on(disk).unwrap().topics[0].counts;
        assert_eq!((counts.delayed + counts.dead + counts.broadcasts, counts.dead), (300, 100));
    };
    is_there(&disk.cut(|_| Fate::Lost));
    drop((producer, new));
    assert!(check_on(&disk).unwrap().is_sealed);
    is_there(&disk);
    assert!(NewDirectory::on(Arc::new(disk.clone())).unwrap().is_none(), "it has a store now");
    let noted = Journal::noted_memory(&disk).unwrap();
    let mut rig = Rig::open(&disk);
    let used = rig.store.memory_use().unwrap().bytes;
    assert_eq!(noted, Some(used >> 10 << 10), "the last group tells a start what it needs");
    assert!(rig.claims(1)[0].token.fence > fence);
}

#[test]
fn an_import_into_a_new_directory_does_with_ids_that_come_again_what_any_import_does() {
    for on_duplicate in [OnDuplicate::Keep, OnDuplicate::Replace, OnDuplicate::Reject] {
        let (filled, usual) = (SimulatedDisk::new(), Rig::open(&SimulatedDisk::new()));
        let new = NewDirectory::on(Arc::new(filled.clone())).unwrap().expect("it is new");
        // Ids that come again, in other places and with other payloads; an id of a job and of a broadcast; and one twice in a batch.
        let batches = [(0..10, 0), (5..20, 1), (18..25, 2), (0..3, 1), (30..33, 0)].map(|(ids, shift)| {
            let copies = ids.clone().chain([ids.start]).map(|number: usize| {
                let new = copy(number * 3 + (number + shift) % 3, 1_763_000_000_000 + shift as u64);
                JobCopy { id: JobId::new(number.to_string()).unwrap(), ..new }
            });
            copies.collect::<Vec<_>>()
        });
        for (number, copies) in (1..).zip(batches) {
            let outcomes = [&new as &dyn Store, &*usual.store].map(|store| {
                let import = Import { copies: copies.clone(), on_duplicate, fence: Fence(1) };
                let imported = store.producer(&key(), &ProducerId::new("p")).import(number, import);
                usual.store.commit().unwrap();
                let BatchAnswer::Done(outcomes) = now(imported).unwrap() else { panic!("the batch is not late") };
                outcomes
            });
            assert_eq!(outcomes[0], outcomes[1], "{on_duplicate:?}, batch {number}");
        }
        drop(new);
        let mut sorted = [copies(&*Rig::open(&filled).store), copies(&*usual.store)];
        sorted
            .iter_mut()
            .for_each(|copies| copies.sort_by(|a, b| (&a.id, a.is_broadcast).cmp(&(&b.id, b.is_broadcast))));
        assert_eq!(sorted[0], sorted[1], "{on_duplicate:?}");
    }
}

#[test]
fn a_directory_that_is_filled_takes_nothing_but_imports() {
    let new = NewDirectory::on(Arc::new(SimulatedDisk::new())).unwrap().expect("it is new");
    assert!(matches!(now(new.counts(&key())), Err(StoreError::Unsupported { .. })));
    assert!(now(new.contact()).is_ok(), "an import asks for the clock");
    let link = new.link(&key(), &dq::job::NodeId::new("n"));
    assert!(now(link.step(dq::store::step::Wake)).unwrap_err().nothing_done());
    let file = FileStore::on(Arc::new(SimulatedDisk::new()), Arc::new(WallClock));
    assert_eq!(file.memory_use(), None, "it is not open");
}

//! Disks without room.

use std::io::ErrorKind;

use dq::store::file::disk::Disk;
use dq::store::file::journal::{JournalError, TopicNumber};
use dq_testing::disk::{Fate, Operation, SimulatedDisk};

use crate::fixture::{UNIT, content, numbers, open, options, read};

/// Appends and commits until the disk is full, and returns how many frames were confirmed.
fn fill(disk: &SimulatedDisk, frames: u64) -> (std::sync::Arc<dq::store::file::journal::Journal>, u64) {
    let (journal, ..) = open(disk, &options()).unwrap();
    let mut confirmed = 0;
    for number in 0..frames {
        journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
        match journal.commit() {
            Ok(_) => confirmed = number + 1,
            Err(JournalError::Full(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    (journal, confirmed)
}

#[test]
fn a_full_disk_keeps_what_was_confirmed_and_takes_the_rest_once_there_is_room() {
    let mut were_full = 0;
    for room in (2 * UNIT as u64 + 100..120 * UNIT as u64).step_by(2_657) {
        let disk = SimulatedDisk::new();
        disk.set_room(Some(room));
        let (journal, confirmed) = fill(&disk, 100);
        were_full += u64::from(confirmed < 100);
        for after in [disk.copy(), disk.cut(|_| Fate::Lost), disk.cut(|_| Fate::Garbled)] {
            let found = numbers(&read(&after).unwrap().1);
            assert!(found.len() as u64 >= confirmed, "room {room}");
            assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
        }
        disk.set_room(None);
        journal.commit().unwrap();
        journal.append(TopicNumber::NONE, 0, &content(100)).unwrap();
        journal.commit().unwrap();
        drop(journal);
        for after in [disk.copy(), disk.cut(|_| Fate::Lost)] {
            assert_eq!(numbers(&read(&after).unwrap().1), (0..=100).collect::<Vec<_>>(), "room {room}");
        }
    }
    assert!(were_full > 50, "{were_full}");
}

#[test]
fn each_write_and_create_that_finds_no_room_is_repeated_by_the_next_commit() {
    let count = |operation| {
        let disk = SimulatedDisk::new();
        assert_eq!(fill(&disk, 100).1, 100);
        disk.count(operation)
    };
    for operation in [Operation::Write, Operation::Create, Operation::Rename] {
        for (number, kind) in
            (1..count(operation)).flat_map(|n| [(n, ErrorKind::StorageFull), (n, ErrorKind::QuotaExceeded)])
        {
            let disk = SimulatedDisk::new();
            // The first segment is made when the journal is opened, which fails then.
            let (journal, ..) = open(&disk, &options()).unwrap();
            drop(journal);
            disk.fail(operation, number, kind);
            let Ok((journal, ..)) = open(&disk, &options()) else { continue };
            for number in 0..100 {
                journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
                let _ = journal.commit();
            }
            journal.commit().unwrap();
            drop(journal);
            let after = disk.cut(|_| Fate::Lost);
            assert_eq!(numbers(&read(&after).unwrap().1), (0..100).collect::<Vec<_>>(), "{operation:?} {number}");
        }
    }
}

#[test]
fn a_disk_with_little_room_keeps_it_so_a_closed_journal_opens_again() {
    let disk = SimulatedDisk::new();
    let (ahead, room) = (options().ahead_bytes, 40 * UNIT as u64);
    assert!((2 * ahead..16 * ahead).contains(&room), "zeros would fit, but would take much of it");
    disk.set_room(Some(room));
    for number in 0..3 {
        let (journal, ..) = open(&disk, &options()).unwrap();
        journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
        journal.seal().unwrap();
        drop(journal);
        let used: u64 = disk.list().unwrap().iter().map(|entry| entry.bytes).sum();
        // A segment with its header, the group, and the seal.
        assert!(((number + 1) * UNIT as u64..(number + 1) * 4 * UNIT as u64 + 64).contains(&used), "{used} bytes");
    }
    assert_eq!(numbers(&read(&disk).unwrap().1), [0, 1, 2]);
}

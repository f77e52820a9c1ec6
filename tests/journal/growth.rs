//! What one caller costs, and what decides when a snapshot is due.

use dq::store::file::journal::{Journal, Options, TopicNumber};
use dq_testing::disk::{Operation, SimulatedDisk};

use crate::fixture::{UNIT, open, options};
use crate::opened;

/// Of one add with a payload of 100 bytes.
const CONTENT: usize = 123;

#[test]
fn a_commit_of_one_frame_is_one_write_of_a_unit_and_one_sync_and_each_256th_lengthens_the_file_first() {
    let disk = SimulatedDisk::new();
    let usual = Options { segment_bytes: 64 << 20, ahead_bytes: 1 << 20, ..options() };
    let (journal, ..) = open(&disk, &usual).unwrap();
    let count = || (disk.written(), disk.count(Operation::Write), disk.count(Operation::Sync));
    let commit = |times: u64| {
        let before = count();
        for _ in 0..times {
            journal.append(TopicNumber::NONE, 0, &[7; CONTENT]).unwrap();
            journal.commit().unwrap();
        }
        let after = count();
        (after.0 - before.0, after.1 - before.1, after.2 - before.2)
    };
    let unit = UNIT as u64;
    // The first writes a mebibyte of zeros ahead and syncs it; 255 more leave one unit of that.
    let lengthening = (unit + (1 << 20), 1 + 1 + 16, 2);
    assert_eq!(commit(1), lengthening);
    assert_eq!(commit(255), (255 * unit, 255, 255));
    assert_eq!(commit(1), lengthening);
}

#[test]
fn growth_is_counted_in_bytes_of_frames_and_padding_apart() {
    let (disk, journal) = opened();
    for _ in 0..50 {
        journal.append(TopicNumber::NONE, 0, &[7; CONTENT]).unwrap();
        journal.commit().unwrap();
    }
    let growth = journal.growth().unwrap();
    assert_eq!(growth.frames, 50 * (13 + CONTENT as u64));
    let units = journal.appended().unwrap().0;
    assert_eq!(growth.frames + growth.padding, units, "with the first unit of each segment");
    assert!(growth.padding > 25 * growth.frames, "{growth:?}");
    drop(journal);

    let (journal, ..) = open(&disk, &options()).unwrap();
    assert_eq!(journal.growth().unwrap().frames, growth.frames, "an opening counts what it reads");
    let mut snapshot = journal.snapshot().unwrap();
    snapshot.append(TopicNumber::NONE, 0, &[7; CONTENT]).unwrap();
    journal.append(TopicNumber::NONE, 0, &[7; CONTENT]).unwrap();
    snapshot.finish().unwrap();
    let since = journal.growth().unwrap();
    assert_eq!((since.frames, since.snapshot), (13 + CONTENT as u64, 2 * UNIT as u64));
    drop(journal);
    let (journal, ..) = open(&disk, &options()).unwrap();
    assert_eq!(journal.growth().unwrap().frames, since.frames);
}

#[test]
fn the_last_group_says_what_the_state_takes_in_memory_and_a_start_keeps_that() {
    let disk = SimulatedDisk::new();
    let noted = || Journal::noted_memory(&disk).unwrap();
    let (journal, ..) = open(&disk, &options()).unwrap();
    let append = |journal: &Journal| {
        journal.append(TopicNumber::NONE, 0, &[7; CONTENT]).unwrap();
        journal.commit().unwrap();
    };
    append(&journal);
    assert_eq!(noted(), None);
    for number in 1..40 {
        journal.note_memory(number << 20);
        assert_eq!(noted(), Some((number - 1) << 20).filter(|bytes| *bytes > 0), "it is in the next group");
        append(&journal);
        assert_eq!(noted(), Some(number << 20));
    }
    drop(journal);
    for _ in 0..2 {
        // The last group moves to a new segment, and the program dies before it writes another.
        drop(open(&disk, &options()).unwrap());
        assert_eq!(noted(), Some(39 << 20));
    }
}

//! Snapshots that are interrupted, damaged, or cut.

use dq::store::file::disk::Disk;
use dq::store::file::journal::{Journal, OpenError, SnapshotError};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{UNIT, content, keep, numbers, open, options, read};
use crate::opened;
use crate::written::{append, snapshot};

pub fn names(disk: &SimulatedDisk, prefix: &str) -> Vec<String> {
    let mut names: Vec<String> = disk.list().unwrap().into_iter().map(|entry| entry.name).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

/// A disk as a power cut may leave it between the second snapshot and the removal of the first: both are there, and all segments.
fn with_two_snapshots() -> (SimulatedDisk, Vec<String>) {
    let (disk, journal) = opened();
    append(&journal, 0..50);
    snapshot(&journal, 0..50);
    append(&journal, 50..100);
    let before = disk.copy();
    snapshot(&journal, 0..100);
    append(&journal, 100..110);
    drop(journal);
    for name in names(&before, "") {
        if !disk.list().unwrap().iter().any(|entry| entry.name == name) {
            disk.put(&name, &before.file(&name));
        }
    }
    let snapshots = names(&disk, "snapshot-");
    assert_eq!(snapshots.len(), 2);
    (disk, snapshots)
}

#[test]
fn of_two_snapshots_the_newest_counts_and_the_other_goes() {
    let (disk, snapshots) = with_two_snapshots();
    let segments = names(&disk, "journal-").len();
    let (.., frames) = open(&disk, &options()).unwrap();
    assert_eq!(numbers(&frames), (0..110).collect::<Vec<_>>());
    assert_eq!(names(&disk, "snapshot-"), snapshots[1..]);
    assert!((1..segments).contains(&names(&disk, "journal-").len()), "{segments}");
}

#[test]
fn a_damaged_snapshot_is_refused_and_the_older_one_is_for_salvage() {
    let (disk, snapshots) = with_two_snapshots();
    let mut bytes = disk.file(&snapshots[1]);
    bytes[UNIT + 500] ^= 4;
    disk.put(&snapshots[1], &bytes);
    match read(&disk) {
        Err(OpenError::Damaged { file, .. }) => assert!(file.ends_with(&snapshots[1]), "{file}"),
        other => panic!("{other:?}"),
    }
    let mut frames = Vec::new();
    let salvaged = Journal::salvage(&disk, keep(&mut frames)).unwrap();
    let mut found = numbers(&frames);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..110).collect::<Vec<_>>());
    assert!(salvaged.unsound.iter().all(|range| range.file.ends_with(&snapshots[1])), "{:?}", salvaged.unsound);
}

#[test]
fn a_snapshot_that_ends_early_is_refused() {
    let (disk, journal) = opened();
    append(&journal, 0..60);
    snapshot(&journal, 0..60);
    drop(journal);
    let name = names(&disk, "snapshot-").remove(0);
    let bytes = disk.file(&name);
    let mut last = 0;
    for length in 0..bytes.len() {
        disk.put(&name, &bytes[..length]);
        match read(&disk) {
            Err(OpenError::Damaged { file, offset, .. }) => {
                assert!(file.ends_with(&name) && (0..=bytes.len() as u64).contains(&offset), "{offset}");
                last = last.max(offset);
            }
            other => panic!("cut to {length}: {other:?}"),
        }
    }
    assert!(last > 0);
    let longer = [bytes.as_slice(), &[1; 600]].concat();
    disk.put(&name, &longer);
    assert!(matches!(read(&disk), Err(OpenError::Damaged { .. })));
    disk.put(&name, &bytes);
    assert_eq!(numbers(&read(&disk).unwrap().1), (0..60).collect::<Vec<_>>());
}

#[test]
fn a_journal_that_ends_before_its_snapshot_did_is_refused() {
    let (disk, journal) = opened();
    append(&journal, 0..3);
    let writer = journal.snapshot().unwrap();
    append(&journal, 3..6);
    writer.finish().unwrap();
    drop(journal);
    let name = names(&disk, "journal-").pop().unwrap();
    let mut bytes = disk.file(&name);
    bytes[4 * UNIT..].fill(0);
    disk.put(&name, &bytes);
    let error = read(&disk).unwrap_err();
    assert!(error.to_string().contains("but the snapshot needs it up to"), "{error}");
}

#[test]
fn one_snapshot_is_taken_at_a_time_and_one_that_is_dropped_leaves_nothing() {
    let (disk, journal) = opened();
    append(&journal, 0..10);
    let writer = journal.snapshot().unwrap();
    assert!(matches!(journal.snapshot(), Err(SnapshotError::Busy)));
    assert_eq!(names(&disk, "snapshot-").len(), 1);
    drop(writer);
    assert!(names(&disk, "snapshot-").is_empty());
    snapshot(&journal, 0..10);
    append(&journal, 10..12);
    drop(journal);
    assert_eq!(numbers(&read(&disk).unwrap().1), (0..12).collect::<Vec<_>>());
}

#[test]
fn topics_keep_their_numbers_and_a_reservation_stays_when_their_segments_go() {
    let (disk, journal) = opened();
    let rare = journal.topic("rare").unwrap();
    journal.append(rare, 0, &content(0)).unwrap();
    journal.reserve(5_000).unwrap();
    append(&journal, 1..60);
    let topic = journal.topic("orders").unwrap();
    let mut writer = journal.snapshot().unwrap();
    (1..60).for_each(|number| writer.append(topic, 0, &content(number)).unwrap());
    writer.finish().unwrap();
    journal.append(rare, 0, &content(60)).unwrap();
    journal.commit().unwrap();
    assert!(!names(&disk, "journal-").contains(&format!("journal-{:020}.dq", 0)));
    drop(journal);
    let (journal, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!((recovered.reserved, frames.last().unwrap().topic.as_str()), (5_000, "rare"));
    assert_eq!((journal.topic("rare").unwrap(), journal.topic("orders").unwrap()), (rare, topic));
    // A lower reservation replaces a higher one: a clean close says exactly what was given out.
    journal.reserve(4_000).unwrap();
    journal.commit().unwrap();
    drop(journal);
    assert_eq!(read(&disk).unwrap().0.reserved, 4_000);
}

#[test]
fn a_snapshot_whose_end_counts_other_frames_is_refused() {
    let (disk, journal) = opened();
    append(&journal, 0..10);
    snapshot(&journal, 0..10);
    drop(journal);
    let name = names(&disk, "snapshot-").remove(0);
    let mut bytes = disk.file(&name);
    // All is in one group, whose last frame is the end: 13 bytes of header, the position, the count.
    let length = u32::from_le_bytes(bytes[UNIT + 32..UNIT + 36].try_into().unwrap()) as usize;
    let (group, body) = (UNIT, UNIT + 56);
    let frame = body + length - 29;
    bytes[frame + 21] += 1;
    let fix = |bytes: &mut Vec<u8>, at: usize, range: std::ops::Range<usize>| {
        let crc = crc32fast::hash(&bytes[range]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    };
    fix(&mut bytes, frame, frame + 4..body + length);
    fix(&mut bytes, group + 40, body..body + length);
    fix(&mut bytes, group + 4, group + 8..body);
    disk.put(&name, &bytes);
    let error = read(&disk).unwrap_err().to_string();
    assert!(error.contains("its end does not fit what is before it"), "{error}");
}

//! Files that end too early.

use dq::store::file::journal::{Frame, Journal, OpenError, Options, Position, TopicNumber};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{UNIT, numbers, open, options, read};
use crate::opened;

const FRAMES: u64 = 2_000;

/// A journal of 2,000 frames in one segment, its file, and for each commit the length of the file that it needs and how many
/// frames were confirmed then.
fn journal_of_one_segment() -> (String, Vec<u8>, Vec<(usize, u64)>) {
    let disk = SimulatedDisk::new();
    let (journal, ..) = open(&disk, &Options { segment_bytes: 1 << 20, ahead_bytes: 0, ..options() }).unwrap();
    let mut confirmed = vec![(UNIT, 0)];
    for number in 0..FRAMES {
        let end = journal.append(TopicNumber::NONE, 0, &number.to_le_bytes()).unwrap();
        if number % 190 == 189 || number == FRAMES - 1 {
            journal.commit().unwrap();
            confirmed.push((end.0 as usize, number + 1));
        }
    }
    drop(journal);
    let name = format!("journal-{:020}.dq", 0);
    (name.clone(), disk.file(&name), confirmed)
}

#[test]
fn a_journal_cut_at_any_byte_has_all_that_was_confirmed_until_then() {
    let (name, bytes, confirmed) = journal_of_one_segment();
    let check = |lengths: Box<dyn Iterator<Item = usize>>| {
        let disk = SimulatedDisk::new();
        for length in lengths {
            disk.put(&name, &bytes[..length]);
            if length < UNIT {
                assert!(matches!(read(&disk), Err(OpenError::Damaged { offset: 0, .. })), "cut to {length}");
                continue;
            }
            let (end, expected) = confirmed.iter().rev().find(|(end, _)| *end <= length).copied().unwrap();
            let mut found = 0_u64;
            let in_order = |_: Position, frame: Frame<'_>| {
                let is_next = frame.bytes == found.to_le_bytes();
                found += 1;
                if is_next { Ok(()) } else { Err("not the next number") }
            };
            let recovered = Journal::read(&disk, in_order).unwrap();
            assert_eq!(found, expected, "cut to {length}");
            // What is left of the next group counts as torn, up to its last byte that is not zero.
            let left = bytes[end.next_multiple_of(UNIT).min(length)..length].iter().rposition(|byte| *byte != 0);
            let torn = recovered.torn.map(|torn| torn.bytes);
            assert_eq!(torn, left.map(|last| last as u64 + 1), "cut to {length}");
        }
    };
    let length = bytes.len();
    std::thread::scope(|scope| {
        scope.spawn(|| check(Box::new((0..=length).step_by(2))));
        check(Box::new((1..=length).step_by(2)));
    });
    assert_eq!(confirmed.last().unwrap().1, FRAMES);
}

#[test]
fn a_journal_that_was_cut_goes_on() {
    let (name, bytes, confirmed) = journal_of_one_segment();
    for length in (UNIT..=bytes.len()).step_by(97) {
        let disk = SimulatedDisk::new();
        disk.put(&name, &bytes[..length]);
        let (journal, ..) = open(&disk, &options()).unwrap();
        journal.append(TopicNumber::NONE, 0, &FRAMES.to_le_bytes()).unwrap();
        journal.commit().unwrap();
        drop(journal);
        let (_, recovered, frames) = open(&disk, &options()).unwrap();
        let expected = confirmed.iter().rev().find(|(end, _)| *end <= length).unwrap().1;
        assert_eq!(numbers(&frames), (0..expected).chain([FRAMES]).collect::<Vec<_>>(), "cut to {length}");
        assert_eq!(recovered.torn, None);
    }
}

#[test]
fn a_segment_that_is_not_the_last_and_ends_early_is_refused() {
    let (disk, journal) = opened();
    for number in 0..200_u64 {
        journal.append(TopicNumber::NONE, 0, &number.to_le_bytes()).unwrap();
        if number % 10 == 9 {
            journal.commit().unwrap();
        }
    }
    drop(journal);
    let name = format!("journal-{:020}.dq", 0);
    let bytes = disk.file(&name);
    let groups = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(groups > 7 * UNIT, "{groups}");
    for length in (0..groups).step_by(7) {
        disk.put(&name, &bytes[..length]);
        match read(&disk) {
            Err(OpenError::Damaged { offset, .. }) => assert!(offset <= length as u64),
            Err(OpenError::Missing { .. }) => {}
            other => panic!("cut to {length}: {other:?}"),
        }
    }
    disk.put(&name, &bytes);
    assert_eq!(read(&disk).unwrap().1.len(), 200);
}

#[test]
fn a_segment_that_is_missing_is_refused() {
    use dq::store::file::disk::Disk;
    let (disk, journal) = opened();
    for number in 0..100_u64 {
        journal.append(TopicNumber::NONE, 0, &[number as u8; 300]).unwrap();
        journal.commit().unwrap();
    }
    drop(journal);
    let mut names: Vec<_> = disk.list().unwrap().into_iter().map(|entry| entry.name).collect();
    names.retain(|name| name.ends_with(".dq"));
    assert!(names.len() > 8);
    for name in &names[..names.len() - 1] {
        let copy = disk.copy();
        copy.remove(name).unwrap();
        assert!(matches!(read(&copy), Err(OpenError::Missing { .. })), "{name}");
    }
}

//! Bits that change after they were synced.

use dq::store::file::disk::Disk;
use dq::store::file::journal::{OpenError, Options};
use dq_testing::disk::SimulatedDisk;
use dq_tests::each;

use crate::early::{Early, Files, files_of};
use crate::fixture::{UNIT, content, numbers, open, options, read};

/// What a flip may lead to besides everything being there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// The documented error.
    Error,
    /// The last group cut, too.
    ErrorOrTornTail,
}

/// Flips bits of every file and reads the journal: every bit up to 16 bytes after what is not zero, and some of the zeros behind that; of these each
/// seventh one in a short run.
fn flip_every_bit(disk: &SimulatedDisk, expected: &[u64], last_group: usize, allowed: Allowed) -> (usize, usize) {
    let (mut refused, mut torn) = (0, 0);
    let mut files = files_of(disk);
    for at in 0..files.len() {
        let (name, mut bytes) = files[at].clone();
        let is_content: Vec<bool> =
            (0..bytes.len()).map(|at| bytes[at.saturating_sub(16)..=at].iter().any(|byte| *byte != 0)).collect();
        for bit in (0..bytes.len() * 8).filter(|bit| is_content[bit / 8] || bit % 509 == 0).step_by(each(7)) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            disk.put(&name, &bytes);
            let early = name.starts_with("journal-").then(|| Early::follow(&files, &name, UNIT)).flatten();
            files[at].1.clone_from(&bytes);
            let mut seen = expected.to_vec();
            match read(disk) {
                Ok((recovered, frames)) => {
                    let found = numbers(&frames);
                    seen.clone_from(&found);
                    if found != expected {
                        assert!(allowed == Allowed::ErrorOrTornTail, "bit {bit} of {}", name);
                        assert_eq!(found, expected[..expected.len() - last_group], "bit {bit} of {}", name);
                        assert!(recovered.torn.is_some());
                        torn += 1;
                    }
                }
                Err(OpenError::Damaged { file, .. } | OpenError::Foreign { file, .. }) => {
                    assert!(file.ends_with(&name));
                    refused += 1;
                }
                Err(other) => panic!("bit {bit} of {}: {other}", name),
            }
            is_refused_or_seen(early, &files, &seen, &format!("bit {bit} of {}", name));
            bytes[bit / 8] ^= 1 << (bit % 8);
            files[at].1.clone_from(&bytes);
        }
        disk.put(&name, &bytes);
    }
    assert_eq!(numbers(&read(disk).unwrap().1), expected);
    (refused, torn)
}

/// Whoever had read up to the segment with the flip sees what the files have, or is told: a view never stays behind in silence.
fn is_refused_or_seen(early: Option<Early>, files: &Files, seen: &[u64], what: &str) {
    match early.map(|early| early.read_on(files)) {
        Some(Ok((true, frames))) => assert_eq!(numbers(&frames), seen, "{what}, followed"),
        Some(Ok((false, _)) | Err(OpenError::Damaged { .. })) | None => {}
        Some(Err(other)) => panic!("{what}, followed: {other}"),
    }
}

fn short_journal(is_sealed: bool, identity: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let options = Options { identity, segment_bytes: 3 * UNIT as u64, ahead_bytes: 2 * UNIT as u64, ..options() };
    let (journal, ..) = open(&disk, &options).unwrap();
    let topic = journal.topic("orders").unwrap();
    journal.reserve(77).unwrap();
    for number in 0..40 {
        journal.append(topic, 3, &content(number)).unwrap();
        // A seal commits the last group itself.
        if number % 4 == 3 && !(is_sealed && number == 39) {
            journal.commit().unwrap();
        }
    }
    if is_sealed {
        journal.seal().unwrap();
    }
    disk
}

#[test]
fn a_flipped_bit_is_refused_unless_it_is_in_the_last_group() {
    let expected: Vec<u64> = (0..40).collect();
    let (refused, torn) = flip_every_bit(&short_journal(false, 7), &expected, 4, Allowed::ErrorOrTornTail);
    assert!(refused > 20_000 / each(7) && torn > 1_000 / each(7), "{refused} refused, {torn} torn");
}

#[test]
fn a_flipped_bit_of_a_journal_that_was_closed_cleanly_is_refused() {
    let expected: Vec<u64> = (0..40).collect();
    let (refused, torn) = flip_every_bit(&short_journal(true, 7), &expected, 0, Allowed::Error);
    assert!(refused > 20_000 / each(7) && torn == 0, "{refused} refused, {torn} torn");
}

#[test]
fn what_an_opening_found_at_an_unclean_end_is_durable_so_a_flip_there_is_refused_too() {
    let disk = short_journal(false, 7).copy();
    let (journal, recovered, _) = open(&disk, &options()).unwrap();
    assert!(!recovered.is_sealed);
    drop(journal);
    let (refused, torn) = flip_every_bit(&disk, &(0..40).collect::<Vec<_>>(), 0, Allowed::Error);
    assert!(refused > 20_000 / each(7) && torn == 0, "{refused} refused, {torn} torn");
}

#[test]
fn a_flipped_bit_of_a_snapshot_is_refused() {
    let disk = SimulatedDisk::new();
    let (journal, ..) = open(&disk, &Options { segment_bytes: 3 * UNIT as u64, ahead_bytes: 0, ..options() }).unwrap();
    let topic = journal.topic("orders").unwrap();
    for number in 0..40 {
        journal.append(topic, 3, &content(number)).unwrap();
        journal.commit().unwrap();
    }
    let mut snapshot = journal.snapshot().unwrap();
    for number in 0..40 {
        snapshot.append(topic, 3, &content(number)).unwrap();
    }
    snapshot.finish().unwrap();
    for number in 40..44 {
        journal.append(topic, 3, &content(number)).unwrap();
    }
    journal.seal().unwrap();
    let (refused, _) = flip_every_bit(&disk, &(0..44).collect::<Vec<_>>(), 0, Allowed::Error);
    assert!(refused > 20_000 / each(7), "{refused} refused");
}

#[test]
fn foreign_files_are_refused_with_what_to_do() {
    let name = format!("journal-{:020}.dq", 0);
    let disk = short_journal(false, 7);
    let bytes = disk.file(&name);
    let refusal = |disk: &SimulatedDisk| read(disk).unwrap_err().to_string();

    disk.put(&name, b"PK\x03\x04 something else entirely".repeat(100).as_slice());
    assert!(refusal(&disk).contains("does not start as a file of dq. Move it away"), "{}", refusal(&disk));

    disk.put(&name, &bytes);
    disk.put("journal-backup.dq", &bytes);
    assert!(refusal(&disk).contains("its name starts like one of dq's"), "{}", refusal(&disk));
}

#[test]
fn a_segment_of_another_journal_is_refused() {
    let (disk, other) = (short_journal(false, 7), short_journal(false, 8));
    let mut files = other.list().unwrap().into_iter();
    let name = files.rfind(|entry| entry.bytes > 0 && entry.name.ends_with(".dq")).unwrap().name;
    disk.put(&name, &other.file(&name));
    match read(&disk) {
        Err(OpenError::Foreign { file, .. }) => assert!(file.ends_with(&name)),
        other => panic!("{other:?}"),
    }
}

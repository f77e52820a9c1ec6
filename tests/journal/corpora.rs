//! Directories to start mutations and fixtures from. The frames of each have the numbers from 0 on.

use dq::store::file::journal::{Options, Position};
use dq_testing::disk::SimulatedDisk;

use crate::early::files_of;
use crate::fixture::{UNIT, content, numbers, open, options, read};

/// A directory, and what is known of it.
pub struct Corpus {
    pub files: Vec<(String, Vec<u8>)>,
    /// How many frames it has.
    pub frames: u64,
    /// How many of them are in its snapshot, which never go.
    pub in_snapshot: u64,
    /// How many of them are in groups that a later group or file names as synced.
    pub synced: u64,
}

impl Corpus {
    /// Puts the files onto a disk.
    pub fn disk(&self) -> SimulatedDisk {
        let disk = SimulatedDisk::new();
        self.files.iter().for_each(|(name, bytes)| disk.put(name, bytes));
        disk
    }
}

/// Small segments without zeros ahead.
fn compact() -> Options {
    Options { segment_bytes: 4 * UNIT as u64, ahead_bytes: 0, ..options() }
}

/// Appends frames in groups of `group`, takes a snapshot after the first `in_snapshot`, and seals or not.
pub fn corpus(frames: u64, group: u64, in_snapshot: u64, is_sealed: bool) -> Corpus {
    let disk = SimulatedDisk::new();
    let (journal, ..) = open(&disk, &compact()).unwrap();
    let topics = ["orders", "mails"].map(|name| journal.topic(name).unwrap());
    journal.reserve(10_000).unwrap();
    let mut synced = 0;
    for number in 0..frames {
        let topic = topics[usize::from(number % 3 == 0)];
        journal.append(topic, (number % 4) as u8, &content(number)).unwrap();
        if number % group == group - 1 {
            journal.commit().unwrap();
            synced = if is_sealed { number + 1 } else { (number + 1).saturating_sub(group) };
        }
        if number + 1 == in_snapshot {
            let mut writer = journal.snapshot().unwrap();
            (0..in_snapshot).for_each(|number| writer.append(topics[0], 0, &content(number)).unwrap());
            writer.finish().unwrap();
        }
    }
    if is_sealed {
        journal.seal().unwrap();
    } else {
        journal.commit().unwrap();
    }
    drop(journal);
    let corpus = Corpus { files: files_of(&disk), frames, in_snapshot, synced };
    let (recovered, found) = read(&corpus.disk()).unwrap();
    assert_eq!(numbers(&found), (0..frames).collect::<Vec<_>>());
    assert_eq!((recovered.reserved, recovered.is_sealed), (10_000, is_sealed));
    assert!(recovered.end > Position(UNIT as u64));
    corpus
}

/// The corpora of the mutations.
pub fn all() -> Vec<Corpus> {
    vec![
        corpus(1, 1, 0, false),
        corpus(40, 4, 0, false),
        corpus(40, 4, 0, true),
        corpus(60, 5, 30, false),
        corpus(60, 5, 60, true),
        corpus(90, 1, 40, false),
    ]
}

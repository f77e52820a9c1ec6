//! The mutation loop for a moment, and the directory that is kept of this version of the format.

use std::collections::BTreeSet;
use std::path::Path;

use dq_testing::disk::SimulatedDisk;
use dq_tests::each;

use crate::fixture::{content, numbers, open, options};
use crate::random::Random;
use crate::{corpora, mutation};

#[test]
fn no_mutation_panics_or_leads_to_a_wrong_state() {
    let (corpora, random, mut counts) = (corpora::all(), Random::new(1), mutation::Counts::default());
    let n = each(4) as u64;
    for _ in 0..6_000 / n {
        mutation::run(&corpora, &random, &mut counts);
    }
    assert!(counts.refused > 1_000 / n && counts.torn > 100 / n && counts.intact > 500 / n, "{counts:?}");
}

#[test]
fn the_kept_directory_of_this_version_opens_and_goes_on() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("journal/fixtures/v3");
    let disk = SimulatedDisk::new();
    for file in std::fs::read_dir(fixture).unwrap() {
        let path = file.unwrap().path();
        disk.put(path.file_name().unwrap().to_str().unwrap(), &std::fs::read(&path).unwrap());
    }
    let (journal, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!((numbers(&frames), recovered.reserved), ((0..60).collect::<Vec<_>>(), 10_000));
    assert!(frames.iter().zip(0..).all(|(frame, number)| frame.bytes == content(number)));
    let topics: BTreeSet<&str> = frames.iter().map(|frame| frame.topic.as_str()).collect();
    assert_eq!(topics, ["orders", "mails"].into());
    assert!(recovered.snapshot.is_some());
    let topic = journal.topic("orders").unwrap();
    journal.append(topic, 0, &content(60)).unwrap();
    journal.seal().unwrap();
    drop(journal);
    let (_, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!((numbers(&frames), recovered.is_sealed), ((0..61).collect::<Vec<_>>(), true));
}

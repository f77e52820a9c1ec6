//! Reading on from where a journal was read before, beside the process that writes it.

use dq::store::file::journal::{Follower, Journal};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{Read, keep, numbers, open, options};
use crate::opened;
use crate::written::{append, snapshot};

fn follow(disk: &SimulatedDisk) -> (Follower, Vec<Read>) {
    let mut frames = Vec::new();
    let follower = Journal::follow(disk, keep(&mut frames)).unwrap().expect("there is a journal");
    (follower, frames)
}

#[test]
fn whoever_follows_a_journal_gets_each_frame_once_across_its_files() {
    let (disk, journal) = opened();
    append(&journal, 0..3);
    let (mut follower, mut frames) = follow(&disk);
    for round in 1..60 {
        append(&journal, round * 3..(round + 1) * 3);
        if round % 20 == 0 {
            // What it replaces was read before.
            assert!(follower.read_on(&disk, keep(&mut frames)).unwrap());
            snapshot(&journal, 0..(round + 1) * 3);
        }
        if round % 7 == 0 || round == 59 {
            assert!(follower.read_on(&disk, keep(&mut frames)).unwrap(), "round {round}");
            assert_eq!(numbers(&frames), (0..(round + 1) * 3).collect::<Vec<_>>());
        }
    }
    assert!(follower.read_on(&disk, |_, _| Err::<(), _>("nothing is new")).unwrap());
}

#[test]
fn whoever_follows_too_slowly_is_told_that_files_went_that_were_not_read() {
    let (disk, journal) = opened();
    append(&journal, 0..3);
    let (mut follower, mut frames) = follow(&disk);
    append(&journal, 3..90);
    snapshot(&journal, 0..90);
    append(&journal, 90..93);
    assert!(!follower.read_on(&disk, keep(&mut frames)).unwrap());
    let (_, frames) = follow(&disk);
    assert_eq!(numbers(&frames), (0..93).collect::<Vec<_>>());
}

#[test]
fn a_program_that_starts_again_is_followed_or_read_anew_and_no_frame_is_missed() {
    let disk = SimulatedDisk::new();
    let (mut follower, mut frames) = {
        let (journal, ..) = open(&disk, &options()).unwrap();
        append(&journal, 0..10);
        follow(&disk)
    };
    let mut anew = 0;
    for round in 1..20 {
        let (journal, ..) = open(&disk, &options()).unwrap();
        append(&journal, round * 10..(round + 1) * 10);
        if round % 3 == 0 {
            journal.seal().unwrap();
        }
        if !follower.read_on(&disk, keep(&mut frames)).unwrap() {
            (follower, frames) = follow(&disk);
            anew += 1;
        }
        assert_eq!(numbers(&frames), (0..(round + 1) * 10).collect::<Vec<_>>(), "round {round}");
    }
    assert!(anew > 0, "the last group was written again");
}

#[test]
fn another_journal_in_the_same_place_is_not_followed() {
    let (disk, other) = (SimulatedDisk::new(), SimulatedDisk::new());
    let (journal, ..) = open(&disk, &options()).unwrap();
    append(&journal, 0..3);
    let (mut follower, mut frames) = follow(&disk);
    let (journal, ..) = open(&other, &dq::store::file::journal::Options { identity: 8, ..options() }).unwrap();
    append(&journal, 100..200);
    assert!(!follower.read_on(&other, keep(&mut frames)).unwrap());
    assert_eq!(numbers(&frames), [0, 1, 2]);
}

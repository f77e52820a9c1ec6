//! Appending, committing, opening again.

use dq::store::file::journal::{JournalError, Origin, Position, TopicNumber};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{content, numbers, open, options, read};
use crate::opened;

#[test]
fn frames_come_back_in_order_with_topic_kind_and_position() {
    let disk = SimulatedDisk::new();
    let (journal, recovered, _) = open(&disk, &options()).unwrap();
    assert!(recovered.is_new);
    let topics = ["orders", "mails"].map(|name| journal.topic(name).unwrap());
    let mut appended = Vec::new();
    for number in 0..500_u64 {
        let (topic, kind) = (topics[(number % 2) as usize], (number % 5) as u8);
        appended.push((journal.append(topic, kind, &content(number)).unwrap(), number));
        if number % 7 == 0 {
            assert!(journal.commit().unwrap() >= journal.appended().unwrap());
        }
    }
    journal.commit().unwrap();
    drop(journal);
    let (_, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!((recovered.frames, recovered.is_new, recovered.is_sealed, recovered.torn), (500, false, false, None));
    for (frame, (position, number)) in frames.iter().zip(&appended) {
        assert_eq!((frame.position, frame.kind), (*position, (number % 5) as u8));
        assert_eq!(frame.topic, ["orders", "mails"][(number % 2) as usize]);
        assert_eq!((&frame.bytes, frame.origin), (&content(*number), Origin::Journal));
    }
    assert_eq!(frames.len(), 500);
}

#[test]
fn positions_grow_over_segments_and_openings() {
    let disk = SimulatedDisk::new();
    let mut last = Position(0);
    for round in 0..20 {
        let (journal, recovered, frames) = open(&disk, &options()).unwrap();
        assert_eq!(frames.len(), round * 30);
        assert!(recovered.end >= last);
        for number in 0..30 {
            let position = journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
            assert!(position > last);
            last = position;
            journal.commit().unwrap();
        }
    }
}

#[test]
fn a_seal_closes_the_journal_and_is_found_again() {
    let (disk, journal) = opened();
    journal.append(TopicNumber::NONE, 0, &content(1)).unwrap();
    journal.seal().unwrap();
    journal.seal().unwrap();
    assert_eq!(journal.append(TopicNumber::NONE, 0, &content(2)), Err(JournalError::Closed));
    drop(journal);
    let (recovered, frames) = read(&disk).unwrap();
    assert_eq!((recovered.is_sealed, numbers(&frames)), (true, vec![1]));
    let (journal, recovered, _) = open(&disk, &options()).unwrap();
    assert!(recovered.is_sealed);
    journal.append(TopicNumber::NONE, 0, &content(3)).unwrap();
    journal.commit().unwrap();
    drop(journal);
    let (_, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!((recovered.is_sealed, numbers(&frames)), (false, vec![1, 3]));
}

#[test]
fn a_snapshot_replaces_the_segments_before_it() {
    let (disk, journal) = opened();
    let topic = journal.topic("orders").unwrap();
    journal.reserve(1_000).unwrap();
    for number in 0..300 {
        journal.append(topic, 1, &content(number)).unwrap();
        journal.commit().unwrap();
    }
    let mut snapshot = journal.snapshot().unwrap();
    journal.append(topic, 1, &content(300)).unwrap();
    for number in 0..100 {
        snapshot.append(topic, 2, &content(number)).unwrap();
    }
    journal.append(topic, 1, &content(301)).unwrap();
    let taken = snapshot.finish().unwrap();
    assert!(taken.removed > 20, "{taken:?}");
    journal.append(topic, 1, &content(302)).unwrap();
    journal.commit().unwrap();
    drop(journal);
    let (journal, recovered, frames) = open(&disk, &options()).unwrap();
    assert_eq!(recovered.snapshot, Some((taken.begin, taken.end)));
    assert_eq!(recovered.reserved, 1_000);
    let expected: Vec<u64> = (0..100).chain(300..303).collect();
    assert_eq!(numbers(&frames), expected);
    let origins = frames[99..].iter().map(|frame| frame.origin).collect::<Vec<_>>();
    assert_eq!(origins, [Origin::Snapshot, Origin::During, Origin::During, Origin::Journal]);
    assert!(frames.iter().all(|frame| frame.topic == "orders"));
    assert_eq!(journal.topic("orders").unwrap(), topic);
}

//! Operations that fail.

use std::io::ErrorKind;

use dq::store::file::journal::{JournalError, TopicNumber};
use dq_testing::disk::{Fate, Operation, SimulatedDisk};

use crate::history::{History, reopen};

const STEPS: u64 = 25;

fn count(operation: Operation) -> u64 {
    let disk = SimulatedDisk::new();
    assert!(History::run(&disk, STEPS).is_sealed);
    disk.count(operation)
}

/// Lets each operation of a kind fail once, and checks what a new process finds, and what is left after a power cut then.
fn fail_each(operation: Operation) -> (u64, u64) {
    let (mut runs, mut poisoned) = (0, 0);
    for number in 0..count(operation) {
        let disk = SimulatedDisk::new();
        disk.fail(operation, number, ErrorKind::Other);
        let history = History::run(&disk, STEPS);
        runs += 1;
        match &history.error {
            Some(JournalError::Poisoned(_)) => poisoned += 1,
            Some(other) => panic!("{operation:?} {number}: {other}"),
            None => {}
        }
        let copy = disk.copy();
        let (journal, recovered, state) =
            reopen(&copy).unwrap_or_else(|error| panic!("{operation:?} {number}: {error}"));
        history.check(&recovered, &state);
        drop(journal);
        // Some of what a failed sync left is in memory only, and the system takes it for clean.
        let (_, _, after) = reopen(&copy.cut(|_| Fate::Lost)).unwrap();
        assert_eq!(after, state, "{operation:?} {number}");
    }
    (runs, poisoned)
}

#[test]
fn an_operation_that_fails_loses_nothing_that_was_confirmed() {
    for (operation, least, poisons) in [
        (Operation::Write, 50, true),
        (Operation::Sync, 25, true),
        (Operation::SyncDirectory, 10, true),
        (Operation::Create, 4, false),
        (Operation::Rename, 4, false),
        (Operation::Remove, 4, false),
    ] {
        let (runs, poisoned) = fail_each(operation);
        assert!(runs > least && (!poisons || poisoned > runs / 2), "{operation:?}: {runs} runs, {poisoned} poisoned");
    }
}

#[test]
fn a_journal_that_failed_once_writes_nothing_more() {
    for operation in [Operation::Write, Operation::Sync] {
        let disk = SimulatedDisk::new();
        let (journal, ..) = reopen(&disk).unwrap();
        journal.append(TopicNumber::NONE, 1, &[1; 16]).unwrap();
        disk.fail(operation, 0, ErrorKind::Other);
        let error = journal.commit().unwrap_err();
        assert!(matches!(error, JournalError::Poisoned(_)), "{error}");
        disk.fail(operation, u64::MAX, ErrorKind::Other);
        assert_eq!(journal.append(TopicNumber::NONE, 1, &[2; 16]), Err(error.clone()));
        assert_eq!(journal.commit(), Err(error.clone()));
        assert_eq!(journal.seal(), Err(error.clone()));
        assert_eq!(journal.reserve(1), Err(error.clone()));
        assert!(journal.snapshot().is_err());
        assert_eq!(journal.poisoned(), Some(error));
        assert_eq!(disk.count(operation), 0);
    }
}

#[test]
fn an_opening_that_fails_changes_no_state() {
    let disk = SimulatedDisk::new();
    disk.off_at(60);
    let history = History::run(&disk, STEPS);
    for operation in Operation::ALL {
        for number in 0.. {
            let copy = disk.copy();
            copy.fail(operation, number, ErrorKind::Other);
            let is_open = reopen(&copy).is_ok();
            for after in [copy.copy(), copy.cut(|_| Fate::Lost)] {
                let (_, recovered, state) = reopen(&after).unwrap();
                history.check(&recovered, &state);
            }
            if is_open {
                break;
            }
        }
    }
}

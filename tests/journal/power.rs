//! Power cuts: what was not synced is there in part, and what was confirmed is there.

use std::sync::Arc;

use dq::store::file::journal::Journal;
use dq_testing::disk::{Fate, Operation, SimulatedDisk};
use dq_tests::each;

use crate::history::{History, State, reopen, step_after};
use crate::random::Random;
use crate::watcher::Watcher;

const STEPS: u64 = 25;

/// What disks and systems write at once: a sector, and a page.
const BLOCKS: [usize; 2] = [512, 4_096];

/// The operations of a run.
fn operations() -> Vec<Operation> {
    let disk = SimulatedDisk::new();
    let history = History::run(&disk, STEPS);
    assert!(history.is_sealed && history.snapshots == 2, "{history:?}");
    disk.operations()
}

/// Runs on a disk with these blocks until the power goes before the operation with a number.
fn run_until(number: u64, block: usize) -> (SimulatedDisk, History) {
    let disk = SimulatedDisk::with_block(block);
    disk.off_at(number);
    let history = History::run(&disk, STEPS);
    (disk, history)
}

/// Checks what the next program finds, and that whoever watches sees the same before it starts and after that.
fn check(disk: &SimulatedDisk, history: &History, what: &str) -> State {
    let mut watcher = Watcher::default();
    let seen = watcher.check(disk, what);
    let (_, state) = next_program(disk, history, &mut watcher, what);
    assert_eq!(seen, state, "{what}");
    state
}

fn next_program(disk: &SimulatedDisk, history: &History, watcher: &mut Watcher, what: &str) -> (Arc<Journal>, State) {
    let (journal, recovered, state) = reopen(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    history.check(&recovered, &state);
    assert_eq!(watcher.check(disk, what), state, "{what}");
    (journal, state)
}

/// Cuts the power at each operation of a run. Returns the cuts, and how many of them left more than was confirmed.
fn cut_at_each_operation(block: usize) -> (usize, usize) {
    let (mut cuts, mut later) = (0, 0);
    for (number, operation) in (0..).zip(&operations()) {
        let is_sync = matches!(operation, Operation::Sync | Operation::SyncDirectory);
        let (disk, history) = run_until(number, block);
        let units = disk.units();
        let mut cut = |what: &str, fate: &mut dyn FnMut(usize) -> Fate| {
            let what = format!("blocks of {block}, operation {number}, {what}");
            let state = check(&disk.cut(fate), &history, &what);
            cuts += 1;
            later += usize::from(state.last > history.confirmed);
        };
        for lost in 0..units {
            for bad in [Fate::Lost, Fate::Garbled] {
                cut("one lost", &mut |unit| if unit == lost { bad } else { Fate::Kept });
            }
        }
        for kept in 0..=units {
            cut("a prefix kept", &mut |unit| if unit < kept { Fate::Kept } else { Fate::Lost });
        }
        let random = Random::new(number);
        for _ in (0..if is_sync && units > 0 { 1_000 } else { 50 }).step_by(each(10)) {
            cut("a subset", &mut |_| [Fate::Kept, Fate::Kept, Fate::Lost, Fate::Garbled][random.below(4)]);
        }
    }
    println!("blocks of {block}: {cuts} cuts, {later} found more");
    (cuts, later)
}

#[test]
fn a_power_cut_takes_nothing_that_was_confirmed() {
    std::thread::scope(|scope| {
        for block in BLOCKS {
            scope.spawn(move || {
                let (cuts, later) = cut_at_each_operation(block);
                assert!(cuts > 40_000 / each(10) && later > 1_000 / each(10), "{cuts} cuts, {later} found more");
            });
        }
    });
}

#[test]
fn a_power_cut_while_the_journal_is_opened_after_one_takes_nothing_either() {
    let mut cuts = 0;
    for (number, block) in (0..operations().len() as u64).step_by(3).zip(BLOCKS.into_iter().cycle()) {
        let (disk, history) = run_until(number, block);
        let random = Random::new(number);
        for _ in 0..4 {
            let first = disk.cut(|_| [Fate::Kept, Fate::Lost, Fate::Garbled][random.below(3)]);
            for second in 0.. {
                let opened = first.cut(|_| Fate::Lost);
                opened.off_at(second);
                let is_open = reopen(&opened).is_ok();
                for _ in 0..5 {
                    let after = opened.cut(|_| [Fate::Kept, Fate::Lost, Fate::Garbled][random.below(3)]);
                    check(&after, &history, &format!("blocks of {block}, operation {number}, then {second}"));
                    cuts += 1;
                }
                if is_open {
                    break;
                }
            }
        }
    }
    assert!(cuts > 1_000, "{cuts}");
}

#[test]
fn a_process_that_is_killed_at_any_operation_loses_nothing_that_was_confirmed() {
    for number in 0..operations().len() as u64 {
        let (disk, history) = run_until(number, BLOCKS[1]);
        let copy = disk.copy();
        let seen = check(&copy, &history, &format!("operation {number}"));
        // What the next process saw stays, even if the power goes right after it opened the journal.
        let after = check(&copy.cut(|_| Fate::Lost), &history, &format!("operation {number}, then the power"));
        assert_eq!(after, seen, "operation {number}");
    }
}

#[test]
fn whoever_watches_a_program_that_is_killed_at_any_operation_sees_what_the_next_one_finds() {
    let (mut readings, mut runs) = (0, 0);
    for number in 0..operations().len() as u64 {
        let (disk, mut history) = run_until(number, BLOCKS[1]);
        let (mut watcher, what) = (std::mem::take(&mut history.watcher), format!("operation {number}"));
        watcher.check(&disk, &what);
        // The machine is still there, and the lock of the program is free.
        disk.off_at(u64::MAX);
        let before = watcher.readings;
        let (journal, state) = next_program(&disk, &history, &mut watcher, &what);
        let after = step_after(&journal, &state);
        assert_eq!(watcher.check(&disk, &what), after, "{what}");
        readings += watcher.readings - before;
        runs += 1;
    }
    assert!(readings > 0 && readings < runs, "{readings} readings from the beginning in {runs} runs");
}

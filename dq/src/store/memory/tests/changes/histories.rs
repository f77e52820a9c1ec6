//! Random histories of steps, with dumps in pages between them.

use proptest::collection::vec;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::super::super::changes::DumpCursor;
use super::steps::{KINDS, Step, take};
use super::*;

/// Runs `check` on random histories of so many kinds of steps, the same ones of a seed each time.
fn on_histories(seed: u8, kinds: u8, cases: u32, longest: usize, check: impl Fn(&[Step])) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let step = (0..kinds, 0..=u8::MAX, 0..=u8::MAX, 0..=u8::MAX);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let run = TestRunner::new_with_rng(config, rng).run(&vec(step, 1..longest), |steps| {
        check(&steps);
        Ok::<_, TestCaseError>(())
    });
    if let Err(failed) = run {
        panic!("{failed}");
    }
}

/// The changes of each step, and the state after it.
fn journal(steps: &[Step]) -> Vec<(Vec<u8>, JournaledState)> {
    let mut bench = logged();
    let one = |step: &Step| {
        take(&mut bench, *step);
        bench.topic.take_notices();
        (changes(&mut bench.topic), state(&bench.topic))
    };
    steps.iter().map(one).collect()
}

#[test]
fn replaying_the_changes_gives_the_state_after_each_step() {
    on_histories(7, KINDS, 400, 60, |steps| {
        let mut copy = Topic::default();
        for (n, (changes, expected)) in journal(steps).iter().enumerate() {
            copy.apply(changes, Replay::Strict).unwrap();
            assert_eq!(state(&copy), *expected, "after step {n}: {:?}", steps[n]);
        }
    });
}

#[test]
fn changes_that_are_applied_again_in_order_change_nothing() {
    on_histories(7, KINDS, 200, 40, |steps| {
        let journal = journal(steps);
        let mut copy = replayed(journal.iter().map(|(changes, _)| changes));
        let expected = state(&copy);
        for from in (0..journal.len()).rev() {
            for (changes, _) in &journal[from..] {
                copy.apply(changes, Replay::WithinDump).unwrap();
            }
            assert_eq!(state(&copy), expected, "again from step {from}");
        }
        let mut twice = Topic::default();
        for (changes, expected) in &journal {
            twice.apply(changes, Replay::Strict).unwrap();
            twice.apply(changes, Replay::WithinDump).unwrap();
            assert_eq!(state(&twice), *expected);
        }
    });
}

/// A dump that goes on between steps, and the changes since it began.
struct Dump {
    cursor: DumpCursor,
    pages: Vec<Vec<u8>>,
    since: Vec<Vec<u8>>,
}

/// Loads the dump and the changes behind it, over `early` changes from before the dump.
fn loaded(dump: &Dump, early: &[Vec<u8>]) -> Topic {
    let mut topic = replayed(&dump.pages);
    for changes in early.iter().chain(&dump.since) {
        topic.apply(changes, Replay::WithinDump).unwrap();
    }
    topic
}

/// The numbers of a step whose kind is this begin a dump, take a page, or give the dump up.
const DUMPS: u8 = KINDS;

#[test]
fn the_pages_of_a_dump_and_the_changes_since_it_began_are_the_state_whatever_steps_come_between() {
    let finished = std::cell::Cell::new(0);
    on_histories(8, KINDS + 6, 600, 120, |steps| finished.set(finished.get() + with_dumps(steps)));
    assert!(finished.get() > 500, "only {} dumps came to their end", finished.get());
}

/// Returns how many dumps came to their end.
fn with_dumps(steps: &[Step]) -> usize {
    let mut bench = logged();
    let (mut dump, mut finished): (Option<Dump>, Option<Dump>) = (None, None);
    let (mut all, mut ended) = (Vec::new(), 0);
    for step in steps {
        if step.0 >= DUMPS {
            match (&mut dump, step.1 % 16) {
                (None, _) => {
                    let cursor = bench.topic.begin_dump();
                    dump = Some(Dump { cursor, pages: Vec::new(), since: Vec::new() });
                }
                (Some(_), 0) => {
                    bench.topic.give_up_dump();
                    dump = None;
                }
                (Some(running_dump), _) => {
                    let mut page = Vec::new();
                    let (rows, bytes) = (1 + usize::from(step.2 % 3), 200 * usize::from(step.3 % 3));
                    let done = bench.topic.dump(&mut running_dump.cursor, rows, bytes, &mut page);
                    running_dump.pages.push(page);
                    if done {
                        (finished, ended) = (dump.take(), ended + 1);
                    }
                }
            }
            continue;
        }
        take(&mut bench, *step);
        bench.topic.take_notices();
        let changes = changes(&mut bench.topic);
        for dump in dump.iter_mut().chain(finished.iter_mut()) {
            dump.since.push(changes.clone());
        }
        all.push(changes);
        if let Some(dump) = &finished {
            let expected = state(&bench.topic);
            assert_eq!(state(&loaded(dump, &[])), expected);
            let before = all.len() - dump.since.len();
            assert_eq!(state(&loaded(dump, &all[before.saturating_sub(5)..before])), expected, "with earlier changes");
        }
    }
    ended
}

#[test]
fn a_dump_writes_each_broadcast_once_however_many_pages_it_takes() {
    let mut bench = logged();
    for name in ["a", "b", "c", "d", "e"] {
        bench.add(NewJob { deliver: Delivery::Broadcast, ..job(name) });
    }
    let mut cursor = bench.topic.begin_dump();
    let mut pages = Vec::new();
    for expected in [false, false, true] {
        let mut page = Vec::new();
        assert_eq!(bench.topic.dump(&mut cursor, 2, 10_000, &mut page), expected);
        pages.push(page);
    }
    assert_eq!(state(&replayed(&pages)), state(&bench.topic));
}

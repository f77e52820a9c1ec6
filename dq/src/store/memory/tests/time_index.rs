//! Ids in order of time, and how they are counted; and the time of a step.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::*;
use crate::store::memory::time_index::{At, LONGEST, Leaves, TimeIndex};

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn take(waiting: &mut TimeIndex, until: Timestamp, limit: usize) -> Vec<(Timestamp, JobId)> {
    let due = || waiting.is_due(until).then(|| waiting.pop_first()).flatten();
    std::iter::from_fn(due).take(limit).collect()
}

#[test]
fn due_ids_come_in_order_up_to_the_limit() {
    let mut waiting = TimeIndex::default();
    for (ms, text) in [(5, "b"), (3, "z"), (5, "a"), (9, "c"), (u64::MAX, "far")] {
        waiting.insert(at(ms), id(text));
    }
    assert_eq!([at(2), at(5), at(u64::MAX)].map(|until| waiting.count_due(until)), [0, 3, 5]);
    assert_eq!(
        [(3, 5), (5, 9), (5, u64::MAX), (9, 3)].map(|(from, to)| waiting.count_between(at(from), at(to))),
        [1, 2, 3, 0]
    );
    assert_eq!(take(&mut waiting, at(5), 2), [(at(3), id("z")), (at(5), id("a"))]);
    assert_eq!(take(&mut waiting, at(5), 2), [(at(5), id("b"))]);
    assert_eq!(waiting.head(), Some(at(9)));
    assert!(!waiting.is_due(at(8)));
}

#[test]
fn a_clock_that_jumps_back_hides_no_id() {
    let mut waiting = TimeIndex::default();
    waiting.insert(at(100), id("old"));
    assert!(take(&mut waiting, at(50), 10).is_empty());
    waiting.insert(at(60), id("new"));
    assert_eq!(take(&mut waiting, at(60), 10), [(at(60), id("new"))]);
    assert_eq!(take(&mut waiting, at(100), 10), [(at(100), id("old"))]);
}

fn numbered(n: u64) -> At {
    (Timestamp::from_millis(n / 3), JobId::new(format!("{n:09}")).unwrap())
}

/// Numbers that jump about, and none of them twice.
fn numbers(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|n| n * 7_919 % 10_007)
}

#[test]
fn counts_are_those_of_the_ids_whatever_came_and_went() {
    let (mut ids, mut leaves) = (BTreeSet::new(), Leaves::default());
    let agree = |ids: &BTreeSet<At>, leaves: &Leaves| {
        for (from, to) in [(0, 20_000), (0, 1), (17, 18), (100, 9_000), (5_000, 5_300), (9_999, 10_050)] {
            let (from, to) = (numbered(from), numbered(to));
            let span = (Bound::Included(&from), Bound::Excluded(&to));
            assert_eq!(leaves.count(ids, span), ids.range::<At, _>(span).count(), "{from:?} to {to:?}");
        }
        assert_eq!(leaves.count(ids, (Bound::Unbounded, Bound::Unbounded)), ids.len());
        assert_eq!(leaves.first + leaves.rest.values().sum::<usize>(), ids.len());
        assert!(leaves.rest.values().chain([&leaves.first]).all(|count| *count < LONGEST), "{leaves:?}");
    };
    for n in numbers(10_000) {
        ids.insert(numbered(n));
        leaves.add(&ids, &numbered(n));
    }
    assert!((40..160).contains(&leaves.rest.len()), "{} leaves", leaves.rest.len());
    agree(&ids, &leaves);
    for n in numbers(8_000) {
        ids.remove(&numbered(n));
        leaves.remove(&numbered(n));
    }
    agree(&ids, &leaves);
    while ids.pop_first().is_some() {
        leaves.remove_first();
        assert_eq!(leaves.first == 0, ids.is_empty(), "the first leaf has ids while there are any");
    }
    assert!(leaves.rest.is_empty());
    agree(&ids, &leaves);
}

#[test]
fn a_delay_is_never_shortened_by_rounding() {
    let now = Now::from_micros(1_999);
    assert_eq!(now.after(Duration::from_nanos(1)), Timestamp::from_millis(2));
    assert_eq!(now.after(Duration::from_nanos(1_001)), Timestamp::from_millis(3));
    assert_eq!(now.after(Duration::MAX), Timestamp::from_millis(u64::MAX));
}

#[test]
fn a_sleep_ends_when_the_head_is_due_and_not_a_millisecond_later() {
    let now = Now::from_micros(1_999);
    assert_eq!(now.until(Timestamp::from_millis(3)), Duration::from_micros(1_001));
    assert_eq!(now.until(Timestamp::from_millis(1)), Duration::ZERO);
}

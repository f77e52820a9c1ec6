//! Ids in order of time, and how they are counted; and the time of a step.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::store::memory::time_index::{FULL, TimeIndex};

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

type At = (Timestamp, JobId);

/// Three ids share a time.
fn numbered(n: u64) -> At {
    (at(n / 3), id(&format!("{n:09}")))
}

fn insert(index: &mut TimeIndex, (at, id): At) {
    index.insert(at, id);
}

/// Asks both for all that an index tells, with spans and pages that begin at each of these numbers.
fn agree(index: &TimeIndex, set: &BTreeSet<At>, numbers: &[u64]) {
    let (head, end) = (set.first().map(|(at, _)| *at), at(u64::MAX));
    assert_eq!((index.len(), index.first(), index.head()), (set.len(), set.first(), head));
    assert!(index.after(None).eq(set));
    assert_eq!(index.count_due(end), set.len());
    assert_eq!(index.count_between(at(0), end), set.iter().filter(|(at, _)| *at < end).count());
    for [from, to] in numbers.iter().flat_map(|from| [0, 1, 40, 20_000].map(|more| [*from, from + more])) {
        let (cursor, [from, to]) = (numbered(from), [from, to].map(|n| numbered(n).0));
        assert!(index.after(Some(cursor.clone())).take(300).eq(set.iter().filter(|id| **id > cursor).take(300)));
        assert_eq!(index.contains(cursor.0, &cursor.1), set.contains(&cursor));
        assert_eq!(index.count_due(to), set.iter().filter(|(at, _)| *at <= to).count());
        let between = set.iter().filter(|(at, _)| (from..to).contains(at)).count();
        assert_eq!(index.count_between(from, to), between, "{from:?} to {to:?}");
        assert_eq!(index.count_between(to, from), 0, "{to:?} to {from:?}");
        assert_eq!(index.is_due(to), head.is_some_and(|head| head <= to));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_index_tells_what_an_ordered_set_tells_whatever_came_and_went(
        has_far in any::<bool>(),
        steps in prop::collection::vec((0_u8..4, 0..6_000_u64, 1..700_u64), 1..24),
    ) {
        let mut set: BTreeSet<At> = has_far.then(|| (at(u64::MAX), id("far"))).into_iter().collect();
        let mut index = TimeIndex::default();
        set.iter().for_each(|far| insert(&mut index, far.clone()));
        for (kind, from, count) in &steps {
            let stride = [1, 7, 13, 1][usize::from(*kind)];
            for id in (0..*count).map(|n| numbered(from + n * stride)) {
                if *kind == 3 {
                    let due = set.first().filter(|(due, _)| *due <= at(from / 2)).cloned();
                    due.iter().for_each(|due| drop(set.take(due)));
                    assert_eq!(index.pop_due(at(from / 2)), due);
                } else if *kind == 2 {
                    if set.remove(&id) {
                        index.remove(id.0, &id.1);
                    }
                } else if set.insert(id.clone()) {
                    insert(&mut index, id);
                }
            }
            agree(&index, &set, &[0, *from, from + count / 2, from + count]);
        }
    }
}

#[test]
fn the_memory_of_ids_that_went_is_free_again() {
    let mut index = TimeIndex::default();
    let all = || (0..100_000).map(|n| numbered(n * 7_919 % 100_003));
    all().for_each(|id| insert(&mut index, id));
    for (at, id) in all().skip(1).step_by(2).chain(all().step_by(2).skip(1).step_by(2)) {
        index.remove(at, &id);
    }
    assert_eq!(index.len(), 25_000);
    let (leaves, room) = index.leaves();
    assert!((25_000 / FULL..25_000 / (FULL / 4)).contains(&leaves), "{leaves} leaves");
    assert!((25_000..4 * 25_000).contains(&room), "room for {room} ids");
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

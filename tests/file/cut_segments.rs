//! The last segment of a directory whose end was cut off, as by an incomplete copy.

use std::collections::BTreeSet;

use dq::store::file::disk::Disk;
use dq::store::file::{Commits, check_on};
use dq::store::step::Change;
use dq_testing::disk::SimulatedDisk;

use crate::rig::Rig;

/// How many places are tried.
const PLACES: u64 = 1_000;

/// A directory with one segment, the jobs that were confirmed, and those whose end was confirmed.
fn directory(is_closed: bool) -> (SimulatedDisk, BTreeSet<String>, BTreeSet<String>) {
    let disk = SimulatedDisk::new();
    let mut rig = Rig::try_open(&disk, |options| {
        options.segment_bytes = 1 << 20;
        options.snapshot_bytes = 1 << 30;
        // A store that commits by hand is never closed.
        options.commits = if is_closed { Commits::AtOnce } else { Commits::ByHand };
    })
    .unwrap();
    let (mut left, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..40 {
        let id = number.to_string();
        rig.added(&[&id]);
        left.insert(id);
        if number % 4 == 3 {
            let claims = rig.claims(1);
            let settled = rig.settle(vec![(&claims[0], Change::Ack, None)]);
            rig.confirmed(settled);
            left.remove(claims[0].id.as_str());
            ended.insert(claims[0].id.to_string());
        }
    }
    if is_closed {
        drop(rig);
        assert!(check_on(&disk).unwrap().is_sealed);
    }
    (disk.copy(), left, ended)
}

#[test]
fn a_last_segment_that_was_cut_anywhere_is_refused_with_the_way_to_save_what_is_sound() {
    for is_closed in [false, true] {
        let (disk, left, ended) = directory(is_closed);
        let segments = disk.list().unwrap().into_iter().filter(|entry| entry.name.starts_with("journal-"));
        let [segment] = &segments.collect::<Vec<_>>()[..] else { panic!("one segment") };
        let whole = Rig::open(&disk.copy());
        assert!(left.iter().all(|id| whole.has(id)) && !ended.iter().any(|id| whole.has(id)));
        let bytes = disk.file(&segment.name);
        let groups = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        // Most places are among the groups, the others among the zeros after them.
        let places = (0..PLACES).map(|place| match place % 10 {
            0 => groups + place * (segment.bytes - groups - 1) / PLACES,
            _ => place * groups / PLACES,
        });
        let cut = disk.copy();
        for place in places {
            cut.put(&segment.name, &bytes[..place as usize]);
            let Err(refused) = Rig::try_open(&cut, |_| {}) else { panic!("cut to {place}: it opens") };
            let text = refused.to_string();
            assert!(text.contains(&segment.name) && text.contains("dq check PATH --salvage NEW"), "{place}: {text}");
        }
    }
}

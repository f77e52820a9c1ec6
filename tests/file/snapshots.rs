//! Snapshots: steps go on while one is taken, and the directory does not grow.

use std::io::ErrorKind;
use std::sync::Arc;

use dq::store::file::{Commits, check_on};
use dq::store::step::Change;
use dq::testing::ManualClock;
use dq_testing::disk::{Operation, SimulatedDisk};
use dq_testing::model;
use dq_tests::Fixture;
use dq_tests::journaled::Watched;
use futures_util::FutureExt;

use crate::rig::{Rig, bytes, now, store_on};

/// A store whose thread takes snapshots all the time. Each time its jobs are counted, a second process opens a copy of the files,
/// and must find the same.
async fn reopened() -> Fixture {
    let (disk, clock) = (SimulatedDisk::new(), Arc::new(ManualClock::at(0)));
    let store = store_on(&disk, &clock).with(|options| {
        (options.commits, options.segment_bytes, options.snapshot_bytes) = (Commits::OnOwnThread, 16 << 10, 1_024);
    });
    store.open().await.unwrap();
    let (store, time) = (Arc::new(store), clock.clone());
    let watched = Watched::new(store.clone(), move |topic| {
        store.commit().unwrap();
        let other = store_on(&disk.copy(), &time);
        now(other.open()).unwrap();
        let (ours, theirs) = (store.rows().unwrap().view(topic), other.rows().unwrap().view(topic));
        assert!(theirs.consistent);
        assert_eq!(
            (&ours.jobs, &ours.broadcasts),
            (&theirs.jobs, &theirs.broadcasts),
            "another process finds other rows"
        );
    });
    Fixture::of(Arc::new(watched), clock)
}

#[test]
fn random_steps_beside_snapshots_leave_files_that_another_process_reads_as_the_same_state() {
    if let Err(difference) = model::check(0..60, || reopened().boxed()) {
        panic!("{difference}");
    }
}

#[test]
fn steady_load_does_not_grow_the_directory() {
    let disk = SimulatedDisk::new();
    let with = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes) = (16 << 10, 32 << 10);
    };
    let mut rig = Rig::try_open(&disk, with).unwrap();
    let waiting: Vec<_> = (0..20).map(|n| format!("waiting {n}")).collect();
    let later = |id: &String| dq::store::NewJob {
        due: dq::store::Due::After(std::time::Duration::from_secs(3_600)),
        ..crate::rig::job(id, "1")
    };
    drop(rig.add_all(waiting.iter().map(later).collect()));
    let mut most = 0;
    for round in 0..400 {
        let ids: Vec<_> = (0..10).map(|n| format!("{round}.{n}")).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        rig.added(&ids);
        let claims = rig.claims(10);
        let settled = rig.settle(claims.iter().map(|claim| (claim, Change::Ack, None)).collect());
        rig.confirmed(settled);
        rig.clock.advance(std::time::Duration::from_millis(10));
        most = most.max(bytes(&disk));
    }
    assert!(disk.written() > 20 * most, "{} bytes were written, {most} were there", disk.written());
    // The frames, eight times that of padding, a segment that is older in part, and two snapshots.
    assert!(((32 << 10)..12 * (32 << 10)).contains(&most), "{most} bytes");
    let checked = check_on(&disk.copy()).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, 20);
}

#[test]
fn a_snapshot_that_fails_is_tried_again_only_once_the_journal_has_grown() {
    let disk = SimulatedDisk::new();
    let with = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes) = (4 << 20, 128 << 10);
    };
    let mut rig = Rig::try_open(&disk, with).unwrap();
    // From here on only snapshots are renamed.
    disk.fail(Operation::Rename, 0, ErrorKind::Other);
    let mut adds = 0;
    let mut tries_at = [1, 2].map(|tries| {
        while disk.count(Operation::Rename) < tries {
            rig.added(&[&adds.to_string()]);
            adds += 1;
        }
        adds
    });
    tries_at[1] -= tries_at[0];
    // A commit takes a unit: the first try comes after 1 MiB of them, the second after an eighth of 128 KiB, which is four.
    assert!(tries_at[0] > 250 && tries_at[1] == 4, "{tries_at:?}");
    drop(rig);
    let checked = check_on(&disk.copy()).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, adds);
    let files = dq::store::file::disk::Disk::list(&disk).unwrap();
    assert!(files.iter().any(|file| file.name.starts_with("snapshot-") && file.name.ends_with(".dq")), "{files:?}");
}

#[test]
fn a_directory_does_not_grow_with_the_number_of_starts() {
    let usual = |options: &mut dq::store::file::FileOptions| {
        (options.segment_bytes, options.snapshot_bytes, options.commits) = (64 << 20, 64 << 20, Commits::AtOnce);
    };
    for closes in [false, true] {
        let mut disk = SimulatedDisk::new();
        let mut most = 0;
        for start in 0..40 {
            let mut rig = Rig::try_open(&disk, usual).unwrap();
            assert_eq!(rig.has("waiting"), start > 0);
            now(rig.add("waiting")).unwrap();
            let killed = disk.copy();
            drop(rig);
            disk = if closes { disk.copy() } else { killed };
            most = most.max(bytes(&disk));
        }
        // Each start writes a mebibyte of zeros ahead.
        assert!(((1 << 20)..20 << 20).contains(&most), "{most} bytes, closes: {closes}");
        assert_eq!(check_on(&disk).unwrap().topics[0].counts.delayed, 1);
    }
}

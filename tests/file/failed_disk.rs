//! A disk that fails: nobody knows what it has, so the store stops.

use std::io::ErrorKind;
use std::time::Duration;

use dq::context::Condition;
use dq::provider::CallError;
use dq::store::{FindingCode, Store, StoreError};
use dq_testing::disk::{Fate, Operation, SimulatedDisk};
use dq_tests::file::Folder;

use crate::node::{Work, condition, count, start};
use crate::rig::{Rig, job, now};

#[test]
fn callers_in_flight_get_unknown_and_later_ones_are_refused_with_what_to_do() {
    for (operation, kind) in [
        (Operation::Sync, ErrorKind::Other),
        (Operation::Write, ErrorKind::Other),
        (Operation::Sync, ErrorKind::StorageFull),
    ] {
        let (disk, mut rig) = Rig::new();
        rig.added(&["before"]);
        let added = [rig.add("a"), rig.add("b")];
        disk.fail(operation, 0, kind);
        let failed = rig.store.commit().unwrap_err();
        assert!(matches!(failed, StoreError::Halted { .. }), "{failed}");
        for added in added {
            let unknown = now(added).unwrap_err();
            assert!(matches!(unknown, StoreError::Unavailable { .. }) && !unknown.nothing_done(), "{unknown}");
        }
        let later = now(rig.add("later")).unwrap_err();
        assert!(matches!(later, StoreError::Halted { .. }) && later.nothing_done(), "{later}");
        assert!(later.to_string().contains("start the program again"), "{later}");
        assert!(now(rig.store.contact()).is_err());
        assert_eq!(rig.dangers(), [FindingCode::StoreHalted]);
        assert!(rig.has("before") && !rig.has("later"), "queries go on, and nothing was done");
        for disk in [disk.copy(), disk.cut(|_| Fate::Lost)] {
            let mut again = Rig::open(&disk);
            assert!(again.has("before") && !again.has("later"));
            again.added(&["later"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn health_says_that_the_store_has_stopped_and_a_new_start_goes_on() {
    let disk = SimulatedDisk::new();
    let (dq, _store, watch) = start(&disk, 1, 0).await;
    dq.provider().add(Work { number: 1 }).after(Duration::from_secs(3_600)).await.unwrap();
    disk.fail(Operation::Sync, 0, ErrorKind::Other);
    let unknown = dq.provider().add(Work { number: 2 }).await.unwrap_err();
    assert!(matches!(unknown, CallError::Unknown { .. }), "{unknown}");
    let later = dq.provider().add(Work { number: 3 }).await.unwrap_err();
    assert!(matches!(later, CallError::NotDone { .. }), "{later}");
    dq.advance(Duration::from_secs(60)).await;
    let Condition::Stopped(text) = condition(&dq) else { panic!("{:?}", condition(&dq)) };
    assert!(text.contains("start the program again once the disk is sound"), "{text}");
    assert!(!dq.health().ready);
    let (again, _store, _) = start(&disk.cut(|_| Fate::Lost), 2, 1).await;
    again.advance(Duration::from_secs(3_600)).await;
    assert!(again.job::<Work>(1).await.is_none(), "it was confirmed, and has run");
    assert!(again.job::<Work>(3).await.is_none());
    assert_eq!(condition(&again), Condition::Working);
    assert_eq!(count(&watch.ended), 0);
}

#[tokio::test]
async fn a_file_that_was_deleted_underneath_stops_the_store_and_says_so() {
    let folder = Folder::unmade();
    let clock = std::sync::Arc::new(dq::testing::ManualClock::at(crate::rig::START));
    let store = dq::store::file::FileStore::new(folder.path()).with(|options| options.clock = clock.clone());
    store.open().await.unwrap();
    let mut rig = Rig::of(store, clock);
    rig.add("before").await.unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("journal-") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let unknown = rig.add_all(vec![job("after", "1")]).await.unwrap_err();
    assert!(!unknown.nothing_done() && unknown.to_string().contains("removed while it was in use"), "{unknown}");
    let later = rig.add("later").await.unwrap_err();
    assert!(matches!(later, StoreError::Halted { .. }), "{later}");
}

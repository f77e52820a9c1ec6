//! Copies of a store, also beside the program that uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dq::job::Metadata;
use dq::store::file::disk::Disk;
use dq::store::file::{CheckError, Commits, FileStore, backup, backup_on, check, check_on};
use dq::store::step::Change;
use dq::testing::ManualClock;
use dq_testing::disk::{Fate, SimulatedDisk};
use dq_tests::file::Folder;

use crate::rig::{Rig, START, job};

/// A store that has taken a snapshot, and written many segments since, and the ids that it has.
fn busy(disk: &SimulatedDisk) -> (Rig, Vec<String>) {
    let mut rig = Rig::try_open(disk, |options| options.snapshot_bytes = 11_000).unwrap();
    let mut ids = Vec::new();
    for round in 0..30 {
        let added: Vec<_> = (0..3).map(|n| format!("{round}.{n}")).collect();
        rig.added(&added.iter().map(String::as_str).collect::<Vec<_>>());
        ids.extend(added);
        let claims = rig.claims(1);
        let settled = rig.settle(vec![(&claims[0], Change::Ack, None::<Metadata>)]);
        rig.confirmed(settled);
        ids.retain(|id| *id != claims[0].id.to_string());
    }
    (rig, ids)
}

#[test]
fn a_copy_beside_the_program_opens_and_has_all_that_was_confirmed() {
    let disk = SimulatedDisk::new();
    let (mut rig, ids) = busy(&disk);
    let copy = SimulatedDisk::new();
    let bytes = backup_on(&disk, &copy).unwrap();
    assert!(disk.list().unwrap().iter().any(|entry| entry.name.starts_with("snapshot-")));
    assert_eq!(bytes, crate::rig::bytes(&copy), "and nothing else");
    rig.added(&["later"]);
    for copy in [copy.copy(), copy.cut(|_| Fate::Lost)] {
        assert_eq!(check_on(&copy).unwrap().topics[0].counts.delayed, ids.len());
        let mut opened = Rig::open(&copy);
        assert!(ids.iter().all(|id| opened.has(id)) && !opened.has("later"));
        opened.added(&["it goes on"]);
    }
    assert!(rig.has("later"), "the program goes on");
}

#[test]
fn a_copy_that_was_interrupted_does_not_open_and_one_that_is_complete_is_durable() {
    let disk = SimulatedDisk::new();
    let (_rig, ids) = busy(&disk);
    let mut refused = 0;
    for operation in 0.. {
        let copy = SimulatedDisk::new();
        copy.off_at(operation);
        let is_done = backup_on(&disk, &copy).is_ok();
        for after in [copy.copy(), copy.cut(|_| Fate::Lost), copy.cut(|_| Fate::Garbled)] {
            match check_on(&after) {
                Ok(checked) => assert_eq!(checked.topics[0].counts.delayed, ids.len(), "operation {operation}"),
                Err(error) => {
                    assert!(!is_done, "operation {operation}: {error}");
                    refused += 1;
                }
            }
        }
        if is_done {
            break;
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn only_a_store_is_copied_and_only_to_an_empty_directory() {
    let folder = Folder::unmade();
    std::fs::create_dir(folder.path()).unwrap();
    let to = folder.path().join("copy");
    assert!(matches!(backup(folder.path().join("missing"), &to), Err(CheckError::NoDirectory { .. })));
    assert!(matches!(backup(folder.path(), &to), Err(CheckError::NoStore { .. })));
    assert!(!to.exists(), "nothing was made");
    let (store, _) = crate::refused::closed();
    std::fs::write(folder.path().join("mine.txt"), "mine").unwrap();
    let error = backup(store.path(), folder.path()).unwrap_err();
    assert!(matches!(error, CheckError::NotEmpty { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("mine.txt")).unwrap(), "mine");
    backup(store.path(), &to).unwrap();
    assert_eq!(check(&to).unwrap().topics[0].counts.delayed, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_busy_directory_that_replaces_its_files_are_sound_and_miss_nothing_that_was_confirmed() {
    let (folder, copies) = (Folder::unmade(), Folder::unmade());
    let clock = Arc::new(ManualClock::at(START));
    let store = FileStore::new(folder.path()).with(|options| {
        (options.clock, options.commits) = (clock.clone(), Commits::OnOwnThread);
        (options.segment_bytes, options.snapshot_bytes) = (128 << 10, 32 << 10);
    });
    store.open().await.unwrap();
    let mut rig = Rig::of(store, clock);
    let confirmed = Arc::new(AtomicUsize::new(0));
    let (known, from, to) = (Arc::clone(&confirmed), folder.path().to_owned(), copies.path().to_owned());
    let copying = tokio::task::spawn_blocking(move || {
        // So many adds that several snapshots replace files meanwhile.
        for number in 0.. {
            let (least, to) = (known.load(Ordering::SeqCst), to.join(number.to_string()));
            backup(&from, &to).unwrap();
            let found = check(&to).unwrap().topics.first().map_or(0, |topic| topic.counts.delayed);
            assert!(found >= least, "{least} jobs were confirmed, and copy {number} has {found}");
            if number >= 20 && least >= 400 {
                break;
            }
        }
    });
    while !copying.is_finished() {
        let number = confirmed.load(Ordering::SeqCst);
        rig.add_all(vec![job(&number.to_string(), "1")]).await.unwrap();
        confirmed.fetch_add(1, Ordering::SeqCst);
    }
    copying.await.unwrap();
    let snapshot = |path: &std::path::Path| path.to_str().unwrap().contains("snapshot-");
    let mut files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    assert!(files.any(|file| snapshot(&file)), "files were replaced meanwhile");
}

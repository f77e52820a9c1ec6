//! Directories that a start refuses, and what it says.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use dq::context::ContextFactory;
use dq::store::Store;
use dq::store::file::{Commits, FileStore, check};
use dq::testing::ManualClock;
use dq_testing::disk::{Operation, SimulatedDisk};
use dq_tests::file::Folder;

use crate::rig::{Rig, START, now, store_on};

/// The text of the start error.
pub async fn refused(store: Arc<dyn Store>) -> String {
    let factory = ContextFactory::new("shop").without_inventory().without_listeners().variables([("", ""); 0]);
    let text = factory.store(store).start().await.expect_err("the directory is refused").to_string();
    assert!(text.starts_with("cannot start, 1 problem:"), "{text}");
    text
}

/// A directory with a journal that was closed cleanly, and the path of the journal.
pub fn closed() -> (Folder, PathBuf) {
    let folder = Folder::unmade();
    let clock = Arc::new(ManualClock::at(START));
    let store = FileStore::new(folder.path()).with(|options| {
        (options.clock, options.commits) = (clock.clone(), Commits::AtOnce);
    });
    now(store.open()).unwrap();
    let mut rig = Rig::of(store, clock);
    now(rig.add("a")).unwrap();
    now(rig.add("b")).unwrap();
    drop(rig);
    let mut files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let journal = files.find(|path| path.to_str().unwrap().contains("journal-")).unwrap();
    (folder, journal)
}

fn opened(folder: &Folder) -> Arc<dyn Store> {
    Arc::new(FileStore::new(folder.path()))
}

#[tokio::test]
async fn a_damaged_journal_is_refused_with_its_file_the_offset_and_what_to_do() {
    let (folder, journal) = closed();
    let sound = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &sound[..sound.len() - 1]).unwrap();
    let name = journal.file_name().unwrap().to_str().unwrap();
    let text = refused(opened(&folder)).await;
    assert!(text.contains(name) && text.contains("its end was cut off"), "{text}");
    assert!(text.contains("dq check PATH --salvage NEW"), "{text}");
    let mut bytes = sound;
    bytes[4_096 + 70] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let text = refused(opened(&folder)).await;
    assert!(text.contains(name) && text.contains("is damaged at offset "), "{text}");
    assert!(text.contains("restore the whole directory from a backup"), "{text}");
    assert!(check(folder.path()).unwrap_err().to_string().contains("is damaged at offset "));
    assert_eq!(std::fs::read(&journal).unwrap(), bytes, "nothing was changed");
}

#[tokio::test]
async fn a_foreign_file_is_refused_and_other_files_are_left_alone() {
    let (folder, journal) = closed();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    std::fs::write(&journal, "a text that somebody put there".repeat(100)).unwrap();
    let text = refused(opened(&folder)).await;
    assert!(text.contains("does not belong to this journal") && text.contains("Move it away"), "{text}");
    assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
}

#[tokio::test]
async fn a_file_in_place_of_the_directory_is_refused() {
    let folder = Folder::unmade();
    std::fs::write(folder.path(), "a file").unwrap();
    for path in [folder.path().to_owned(), folder.path().join("below")] {
        let text = refused(Arc::new(FileStore::new(&path))).await;
        let expected = format!("cannot open the directory {}", path.display());
        assert!(text.contains(&expected), "{text}");
    }
    std::fs::remove_file(folder.path()).unwrap();
}

#[tokio::test]
async fn a_directory_that_may_not_be_written_is_refused_with_the_error_of_the_system() {
    for (kind, says) in [
        (ErrorKind::ReadOnlyFilesystem, "read-only filesystem or storage medium"),
        (ErrorKind::PermissionDenied, "permission denied"),
        (ErrorKind::StorageFull, "no storage space"),
    ] {
        let disk = SimulatedDisk::new();
        disk.fail(Operation::Create, 0, kind);
        let store = store_on(&disk, &Arc::new(ManualClock::at(START)));
        let text = refused(Arc::new(store)).await;
        assert!(text.contains("cannot create simulated/journal-") && text.contains(says), "{text}");
    }
}

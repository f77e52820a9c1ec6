//! What other users of the machine can see and do: nothing, unless the program or its administrator lets them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use dq::store::file::{FileStore, check};
use dq_tests::file::Folder;

use crate::refused::{closed, refused};

/// The permissions of a file or directory.
fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn only_the_user_of_the_program_can_read_what_dq_makes() {
    let (folder, _) = closed();
    assert_eq!(mode(folder.path()), 0o700);
    dq::store::file::compact(folder.path()).unwrap();
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 2, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_link_in_place_of_a_file_is_refused_and_its_target_stays_as_it_is() {
    let snapshot = |folder: &Folder| {
        dq::store::file::compact(folder.path()).unwrap();
        let mut files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        files.find(|path| path.to_str().unwrap().contains("snapshot-")).unwrap()
    };
    for which in ["LOCK", "journal", "snapshot"] {
        let (folder, journal) = closed();
        let link = match which {
            "LOCK" => folder.path().join("LOCK"),
            "journal" => journal,
            _ => snapshot(&folder),
        };
        let target = Folder::unmade();
        fs::rename(&link, target.path()).unwrap();
        let before = fs::read(target.path()).unwrap();
        symlink(target.path(), &link).unwrap();
        let text = refused(Arc::new(FileStore::new(folder.path()))).await;
        assert!(text.contains(link.to_str().unwrap()) && text.contains("not a regular file"), "{text}");
        assert_eq!(fs::read(target.path()).unwrap(), before, "{which}");
        fs::remove_file(target.path()).unwrap();
    }
}

#[tokio::test]
async fn a_hard_link_in_place_of_the_lock_is_refused_and_its_target_stays_as_it_is() {
    for content in [&b"what another program keeps"[..], b"", &[0; 100]] {
        let (folder, target) = (Folder::unmade(), Folder::unmade());
        fs::create_dir(folder.path()).unwrap();
        fs::write(target.path(), content).unwrap();
        fs::hard_link(target.path(), folder.path().join("LOCK")).unwrap();
        let text = refused(Arc::new(FileStore::new(folder.path()))).await;
        assert!(text.contains("LOCK: it is not a lock file of dq: move it away"), "{text}");
        assert_eq!(fs::read(target.path()).unwrap(), content);
        fs::remove_file(target.path()).unwrap();
    }
}

#[tokio::test]
async fn a_file_of_another_program_in_place_of_the_lock_is_refused_and_stays_as_it_is() {
    let (folder, _) = closed();
    let lock = folder.path().join("LOCK");
    fs::write(&lock, "what another program keeps").unwrap();
    let text = refused(Arc::new(FileStore::new(folder.path()))).await;
    assert!(text.contains("LOCK: it is not a lock file of dq: move it away"), "{text}");
    assert_eq!(fs::read(&lock).unwrap(), b"what another program keeps");
}

/// Copies with hard links are a way to back up a directory, and a power cut may leave zeros in a file that was not synced.
#[test]
fn a_lock_that_dq_has_left_is_taken_whatever_its_length_and_its_links() {
    let (folder, _) = closed();
    let lock = folder.path().join("LOCK");
    let copy = Folder::unmade();
    fs::hard_link(&lock, copy.path()).unwrap();
    dq::store::file::compact(folder.path()).unwrap();
    fs::remove_file(copy.path()).unwrap();
    for left in ["", "\0\0\0", "pid 1\nsince 1\nhost a\nprocess 1\n", &format!("pid 1\nhost {}\n", "x".repeat(5_000))] {
        fs::write(&lock, left).unwrap();
        dq::store::file::compact(folder.path()).unwrap();
        let text = fs::read_to_string(&lock).unwrap();
        assert!(text.starts_with(&format!("pid {}\n", std::process::id())) && text.len() < 300, "{text}");
    }
}

#[tokio::test]
async fn a_pipe_in_place_of_a_file_is_refused_and_stops_no_start() {
    let (folder, journal) = closed();
    fs::remove_file(&journal).unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &journal, pipe, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    let text = refused(Arc::new(FileStore::new(folder.path()))).await;
    assert!(text.contains("not a regular file"), "{text}");
}

#[tokio::test]
async fn a_directory_that_every_user_may_write_is_refused_with_what_to_do() {
    let (folder, _) = closed();
    for open in [0o777, 0o1777, 0o702] {
        set_mode(folder.path(), open);
        let text = refused(Arc::new(FileStore::new(folder.path()))).await;
        let path = folder.path().display().to_string();
        // A sticky directory is shared on purpose, even if a store is in it.
        let own = format!("name a directory of its own for the store, such as `{path}/dq`");
        let advice = if open == 0o1777 { own.clone() } else { format!("run `chmod o-w {path}`") };
        assert!(text.contains(&advice), "{text}");
        assert!(check(folder.path()).unwrap_err().to_string().contains(&advice));
    }
    let foreign = Folder::unmade();
    fs::create_dir(foreign.path()).unwrap();
    set_mode(foreign.path(), 0o777);
    let text = refused(Arc::new(FileStore::new(foreign.path()))).await;
    assert!(text.contains("name a directory of its own") && !text.contains("chmod"), "{text}");
    for closed in [0o700, 0o750, 0o755, 0o770, 0o2775] {
        set_mode(folder.path(), closed);
        FileStore::new(folder.path()).open().await.unwrap_or_else(|error| panic!("{closed:o}: {error}"));
    }
}

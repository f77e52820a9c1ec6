//! Real disks that refuse: read-only, without permission, full. Each test runs a program of its own, which is a test that does
//! nothing without its variable: root may write anywhere, so it needs another user, or a disk of its own.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dq::store::StoreError;
use dq::store::file::{FileStore, check};
use dq::testing::ManualClock;
use dq_tests::file::Folder;

use crate::refused::{closed, refused};
use crate::rig::{Rig, START, job, waits};

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

/// Everything below a folder.
fn names(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { names(&path) } else { BTreeSet::new() }.into_iter().chain([path]))
        .collect()
}

/// This program, as an argument list that runs one of its tests.
fn arguments(test: &str) -> [String; 4] {
    [format!("real_disks::{test}"), "--exact".into(), "--nocapture".into(), "--test-threads=1".into()]
}

fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// A command that first mounts a disk, in a namespace of its own: `$0` is the folder, `$@` the program. `None` where the system
/// gives no namespace to this user; what a full or read-only disk does is tested on the simulated disk too.
fn with_mount(mount: &str, folder: &Path, test: &str) -> Option<Command> {
    let namespace = ["--user", "--map-root-user", "--mount"];
    let probe = Command::new("unshare").args(namespace).args(["mount", "-t", "tmpfs", "none", "/tmp"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("no namespace of its own here: {test} did not run");
        return None;
    }
    let script = format!("{mount} && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(namespace).args(["sh", "-c", &script]).arg(folder).arg(std::env::current_exe().unwrap());
    command.args(arguments(test));
    Some(command)
}

/// A folder with a closed store in `closed`, and an empty folder.
fn prepared() -> Folder {
    let (store, _) = closed();
    let folder = Folder::unmade();
    std::fs::create_dir_all(folder.path().join("empty")).unwrap();
    std::fs::create_dir(folder.path().join("closed")).unwrap();
    for file in names(store.path()) {
        let copy = folder.path().join("closed").join(file.file_name().unwrap());
        std::fs::copy(&file, &copy).unwrap();
        // Another user may read it, unlike what dq makes.
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o644)).unwrap();
    }
    folder
}

#[tokio::test]
async fn a_program_that_may_not_write() {
    let Ok(folder) = std::env::var("DQ_TEST_FORBIDDEN") else { return };
    let (folder, says) = (Path::new(&folder), std::env::var("DQ_TEST_SAYS").unwrap());
    let before = names(folder);
    for (directory, cannot) in
        [("empty", "cannot lock "), ("closed", "cannot lock "), ("missing/below", "cannot open the directory ")]
    {
        let path = folder.join(directory);
        let text = refused(Arc::new(FileStore::new(&path))).await;
        assert!(text.contains(cannot) && text.contains(&says), "{directory}: {text}");
        assert!(text.contains(path.to_str().unwrap()), "{directory}: {text}");
    }
    assert_eq!(names(folder), before, "nothing was made");
    let checked = check(folder.join("closed")).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, 2, "it can still be read");
}

#[test]
fn a_read_only_disk_is_refused_and_nothing_is_made() {
    let folder = prepared();
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"";
    let Some(mut command) = with_mount(mount, folder.path(), "a_program_that_may_not_write") else { return };
    passes(command.env("DQ_TEST_FORBIDDEN", folder.path()).env("DQ_TEST_SAYS", "Read-only file system"));
}

#[test]
fn a_directory_without_permission_is_refused_and_nothing_is_made() {
    let (folder, programs) = (prepared(), Folder::unmade());
    let may = |mode: u32| {
        for path in ["closed", "empty", ""] {
            std::fs::set_permissions(folder.path().join(path), PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    may(0o555);
    // Another user may not be able to reach the folder that this program is in.
    std::fs::create_dir(programs.path()).unwrap();
    let program = programs.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.args(arguments("a_program_that_may_not_write")).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    passes(command.env("DQ_TEST_FORBIDDEN", folder.path()).env("DQ_TEST_SAYS", "Permission denied"));
    may(0o755);
}

#[tokio::test]
async fn a_program_on_a_small_disk() {
    let Ok(folder) = std::env::var("DQ_TEST_SMALL") else { return };
    let (folder, clock) = (Path::new(&folder), Arc::new(ManualClock::at(START)));
    let filler = folder.join("filler");
    std::fs::write(&filler, vec![1; 512 << 10]).unwrap();
    let open = || async {
        let store = FileStore::new(folder.join("store")).with(|options| options.clock = clock.clone());
        store.open().await.unwrap();
        Rig::of(store, clock.clone())
    };
    let mut rig = open().await;
    let payload = format!("\"{}\"", "x".repeat(16 << 10));
    let mut added = Vec::new();
    let (refused, waiting) = loop {
        added.push(added.len().to_string());
        let mut answer = rig.add_all(vec![job(added.last().unwrap(), &payload)]);
        let mut refused = Ok(());
        while waits(&mut answer) && refused.is_ok() {
            refused = dq::store::Store::contact(&*rig.store).await.map(drop);
            tokio::task::yield_now().await;
        }
        match refused {
            Ok(()) => answer.await.map(drop).unwrap(),
            Err(refused) => break (refused, answer),
        }
        assert!(added.len() < 100, "1 MiB is full by now");
    };
    let is_full = |error: &StoreError| error.nothing_done() && error.to_string().contains("the disk is full");
    assert!(matches!(refused, StoreError::Full { .. }) && is_full(&refused), "{refused}");
    assert!(is_full(&rig.add("refused").await.unwrap_err()));
    std::fs::remove_file(&filler).unwrap();
    waiting.await.unwrap();
    rig.add("after").await.unwrap();
    drop(rig);
    assert_eq!(check(folder.join("store")).unwrap().topics[0].counts.delayed, added.len() + 1);
    let reopened = open().await;
    assert!(added.iter().all(|id| reopened.has(id)) && reopened.has("after") && !reopened.has("refused"));
}

#[test]
fn a_full_disk_refuses_and_the_store_goes_on_once_there_is_room() {
    let folder = Folder::unmade();
    std::fs::create_dir(folder.path()).unwrap();
    let mount = "mount -t tmpfs -o size=1m none \"$0\"";
    let Some(mut command) = with_mount(mount, folder.path(), "a_program_on_a_small_disk") else { return };
    passes(command.env("DQ_TEST_SMALL", folder.path()));
}

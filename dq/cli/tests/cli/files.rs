//! `dq check`, `dq compact` and `dq backup`, and `file:` stores in `dq export` and `dq import`.

use std::fs;

use dq_tests::file::Folder;
use dq_tests::redis::RedisServer;

use crate::program::{done, export_of, fails, job, run, topic};

/// A directory with three jobs.
fn three_jobs() -> Folder {
    let folder = Folder::unmade();
    let jobs: Vec<_> = [topic("orders")].into_iter().chain(["7", "8", "9"].map(|id| job(id, "delayed"))).collect();
    done(&["import", &folder.url()], &export_of(&jobs));
    folder
}

fn path(folder: &Folder) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn a_check_says_what_a_directory_holds() {
    let folder = three_jobs();
    let checked = done(&["check", path(&folder)], "");
    assert!(checked.stdout.starts_with(&format!("the files of {} are sound: ", path(&folder))), "{checked:?}");
    let line = "\n  shop:orders: 3 delayed, 0 running, 0 unacked, 0 dead, 0 done, 0 broadcasts\n";
    assert!(checked.stdout.ends_with(line), "closed cleanly: {checked:?}");
}

#[test]
fn what_is_no_store_is_refused_and_nothing_is_made() {
    let folder = Folder::unmade();
    for command in
        [&["check", path(&folder)][..], &["compact", path(&folder)], &["export", &folder.url(), "--app", "shop"]]
    {
        fails(1, command, "", &["is not a directory"]);
    }
    assert!(!folder.path().exists());
    fs::create_dir(folder.path()).unwrap();
    for command in ["check", "compact"] {
        fails(1, &[command, path(&folder)], "", &["holds no store"]);
    }
}

#[test]
fn a_compact_directory_holds_the_same_in_fewer_bytes() {
    let folder = three_jobs();
    for id in ["10", "11"] {
        done(&["add", "orders", "1", "--id", id, "--delay", "1h", "--store", &folder.url(), "--app", "shop"], "");
    }
    let before = done(&["export", &folder.url(), "--app", "shop"], "").stdout;
    let compacted = done(&["compact", path(&folder)], "").stderr;
    let numbers: Vec<u64> = compacted.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [before, after] if after < before), "{compacted}");
    assert_eq!(done(&["export", &folder.url(), "--app", "shop"], "").stdout, before);
}

#[test]
fn what_is_sound_of_a_damaged_directory_is_saved_and_what_is_not_is_named() {
    let (folder, saved) = (three_jobs(), Folder::unmade());
    let sound = done(&["check", path(&folder), "--salvage", path(&saved)], "").stdout;
    assert!(sound.contains("shop:orders: 3 delayed") && !sound.contains("not sound"), "{sound}");
    let segment = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.to_str().unwrap().contains("journal-")).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[4_096 + 8] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let words = [segment.to_str().unwrap(), "is damaged at offset 4096", "restore the whole directory from a backup"];
    fails(1, &["check", path(&folder)], "", &words);
    fails(1, &["export", &folder.url(), "--app", "shop"], "", &words);
    let again = Folder::unmade();
    let ended = run(&["check", path(&folder), "--salvage", path(&again)], "");
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let range = format!("not sound: {} from offset 4096 on, ", segment.display());
    assert!(ended.stdout.contains(&range), "{ended:?}");
    assert!(ended.stdout.contains("shop:orders: 3 delayed"), "the frames of that group are sound: {ended:?}");
    done(&["check", path(&again)], "");
}

#[test]
fn a_directory_is_copied_while_a_program_uses_it() {
    let (folder, copy) = (three_jobs(), Folder::unmade());
    let before = done(&["export", &folder.url(), "--app", "shop"], "").stdout;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let provider = runtime.block_on(dq::Provider::connect("shop", folder.url().as_str())).unwrap();
    let copied = done(&["backup", path(&folder), path(&copy)], "").stderr;
    assert!(copied.starts_with(&format!("copied {} to {}: ", path(&folder), path(&copy))), "{copied}");
    assert_eq!(done(&["export", &copy.url(), "--app", "shop"], "").stdout, before);
    fails(
        1,
        &["backup", path(&folder), path(&copy)],
        "",
        &["is not empty", "name a directory that does not exist yet"],
    );
    runtime.block_on(provider.close());
}

#[test]
fn a_topic_moves_from_files_to_redis_and_back() {
    let (folder, server, back) = (three_jobs(), RedisServer::start(), Folder::unmade());
    let of_files = done(&["export", &folder.url(), "--app", "shop"], "").stdout;
    done(&["import", &server.url()], &of_files);
    let of_redis = done(&["export", &server.url(), "--app", "shop"], "").stdout;
    done(&["import", &back.url()], &of_redis);
    assert_eq!(done(&["export", &back.url(), "--app", "shop"], "").stdout, of_files);
}

//! `dq check` and `dq compact`, and `file:` stores in `dq export` and `dq import`.

use std::fs;

use dq_tests::file::Folder;
use dq_tests::redis::RedisServer;

use crate::program::{done, export_of, fails, job, topic};

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
fn a_damaged_directory_is_named_with_file_and_offset_and_what_to_do() {
    let folder = three_jobs();
    let segment = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.to_str().unwrap().contains("journal-")).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[4_096 + 8] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let words = [segment.to_str().unwrap(), "is damaged at offset 4096", "restore the whole directory from a backup"];
    fails(1, &["check", path(&folder)], "", &words);
    fails(1, &["export", &folder.url(), "--app", "shop"], "", &words);
}

#[test]
fn what_is_no_store_is_refused_and_nothing_is_made() {
    let folder = Folder::unmade();
    for command in
        [&["check", path(&folder)][..], &["compact", path(&folder)], &["export", &folder.url(), "--app", "shop"]]
    {
        fails(1, command, "", &["is no directory"]);
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
    let before = done(&["export", &folder.url(), "--app", "shop"], "").stdout;
    let compacted = done(&["compact", path(&folder)], "").stderr;
    let numbers: Vec<u64> = compacted.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(matches!(numbers[..], [before, after] if after < before), "{compacted}");
    assert_eq!(done(&["export", &folder.url(), "--app", "shop"], "").stdout, before);
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

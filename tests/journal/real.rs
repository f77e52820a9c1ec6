//! A real directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use dq::store::file::disk::{Directory, Disk};
use dq::store::file::journal::{Holder, JournalError, OpenError, Options, Recovered, TopicNumber};

use crate::fixture::{Read, content, numbers, options};

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("journal").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn open(
    path: &PathBuf,
    options: &Options,
) -> Result<(Arc<dq::store::file::journal::Journal>, Recovered, Vec<Read>), OpenError> {
    let disk: Arc<dyn Disk> = Arc::new(Directory::open(path).unwrap());
    let mut frames = Vec::new();
    let (journal, recovered) =
        dq::store::file::journal::Journal::open(disk, options, crate::fixture::keep(&mut frames))?;
    Ok((Arc::new(journal), recovered, frames))
}

#[test]
fn a_journal_in_a_real_directory_comes_back() {
    let path = directory("comes_back/in/folders/that/are/missing");
    for round in 0..5 {
        let (journal, recovered, frames) = open(&path, &options()).unwrap();
        assert_eq!(numbers(&frames), (0..round * 100).collect::<Vec<_>>());
        assert_eq!(recovered.is_sealed, round > 0 && round % 2 == 0);
        for number in round * 100..(round + 1) * 100 {
            journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
            journal.commit().unwrap();
        }
        if round == 2 {
            let mut snapshot = journal.snapshot().unwrap();
            (0..300).for_each(|number| snapshot.append(TopicNumber::NONE, 0, &content(number)).unwrap());
            assert!(snapshot.finish().unwrap().removed > 0);
        }
        if round % 2 == 1 {
            journal.seal().unwrap();
        }
    }
}

#[test]
fn many_threads_append_and_commit_and_every_frame_is_there_in_the_order_of_its_thread() {
    let path = directory("threads");
    let (journal, ..) = open(&path, &Options { segment_bytes: 64 << 10, ..options() }).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let journal = &journal;
            scope.spawn(move || {
                let topic = journal.topic(&format!("topic {}", thread % 3)).unwrap();
                for number in 0..200 {
                    let position = journal.append(topic, thread, &content(number)).unwrap();
                    if number % 5 == 0 {
                        assert!(journal.commit().unwrap() >= position);
                    }
                }
            });
        }
    });
    journal.seal().unwrap();
    drop(journal);
    let (_, _, frames) = open(&path, &options()).unwrap();
    for thread in 0..8_u8 {
        let own: Vec<Read> = frames.iter().filter(|frame| frame.kind == thread).cloned().collect();
        assert_eq!(numbers(&own), (0..200).collect::<Vec<_>>());
        assert!(own.iter().all(|frame| frame.topic == format!("topic {}", thread % 3)));
    }
}

#[test]
fn the_lock_of_a_real_directory_names_its_holder_and_ends_with_it() {
    let path = directory("lock");
    let (journal, ..) = open(&path, &options()).unwrap();
    let text = open(&path, &options()).unwrap_err().to_string();
    assert!(text.ends_with("is in use by process 1: stop that process, or use another directory"), "{text}");
    drop(journal);
    assert!(path.join("LOCK").exists());
    let holder = Holder { host: Some("web-1".into()), process: Some(7), ..options().holder };
    let (_held, ..) = open(&path, &Options { holder: holder.clone(), ..options() }).unwrap();
    match open(&path, &options()) {
        Err(OpenError::Held { holder: found, .. }) => {
            assert_eq!((&found, found.to_string().as_str()), (&holder, "process 1 on web-1"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_that_is_moved_or_replaced_stops_the_journal_and_what_takes_its_place_is_left_alone() {
    for is_replaced in [false, true] {
        let path = directory("moved");
        let (journal, ..) = open(&path, &options()).unwrap();
        journal.append(TopicNumber::NONE, 0, &content(0)).unwrap();
        journal.commit().unwrap();
        let moved = directory("moved_elsewhere");
        fs::rename(&path, &moved).unwrap();
        if is_replaced {
            fs::create_dir(&path).unwrap();
        }
        journal.append(TopicNumber::NONE, 0, &content(1)).unwrap();
        match journal.commit() {
            Err(JournalError::Poisoned(text)) => {
                assert!(text.contains("moved, removed or replaced while it was in use: move it back"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        drop(journal);
        assert!(!is_replaced || fs::read_dir(&path).unwrap().next().is_none(), "nothing was written there");
        let (_, _, frames) = open(&moved, &options()).unwrap();
        assert_eq!(numbers(&frames)[0], 0);
    }
}

#[test]
fn a_real_directory_tells_who_else_may_change_it() {
    let path = directory("exposed");
    let disk = Directory::open(&path).unwrap();
    assert_eq!(disk.exposures().unwrap(), Vec::<String>::new());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o2775)).unwrap();
    let [group] = &disk.exposures().unwrap()[..] else { panic!("one sentence") };
    assert!(group.starts_with("every member of group ") && group.ends_with(" may write into it"), "{group}");
    // Only root may give a directory away.
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
        let [owner, _] = &disk.exposures().unwrap()[..] else { panic!("two sentences") };
        assert!(owner.starts_with("it belongs to user 65534, and the program runs as user "), "{owner}");
    }
}

#[test]
fn a_real_directory_tells_its_room_and_that_it_is_local() {
    let disk = Directory::open(directory("room")).unwrap();
    assert!(disk.room().unwrap().unwrap() > 1 << 20);
    assert_eq!(disk.network().unwrap(), None);
}

#[test]
fn a_reader_beside_the_writer_sees_a_prefix_and_no_damage() {
    let path = directory("beside");
    let (journal, ..) = open(&path, &Options { segment_bytes: 256 << 10, ..options() }).unwrap();
    let last = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..1_500 {
                journal.append(TopicNumber::NONE, 0, &content(number)).unwrap();
                journal.commit().unwrap();
                last.store(number + 1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let disk = Directory::open(&path).unwrap();
        loop {
            let least = last.load(std::sync::atomic::Ordering::SeqCst);
            let found = numbers(&crate::fixture::read(&disk).unwrap().1);
            assert!(found.len() as u64 >= least && found.iter().copied().eq(0..found.len() as u64));
            if least == 1_500 {
                break;
            }
        }
    });
}

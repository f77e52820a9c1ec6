//! Files that end too early.

use dq::store::file::disk::Disk;
use dq::store::file::journal::{Journal, OpenError, Options, TopicNumber};
use dq_testing::disk::{Fate, SimulatedDisk};
use dq_tests::each;

use crate::fixture::{UNIT, keep, numbers, open, options, read};
use crate::opened;

const FRAMES: u64 = 400;

/// A journal of 400 frames in one segment, as a program leaves it that is killed, or that closes it; and for each commit the length of
/// the file that it needs, and how many frames were confirmed then.
fn journal_of_one_segment(ahead_bytes: u64, is_closed: bool) -> (String, Vec<u8>, Vec<(usize, u64)>) {
    let disk = SimulatedDisk::new();
    let (journal, ..) = open(&disk, &Options { segment_bytes: 1 << 20, ahead_bytes, ..options() }).unwrap();
    let mut confirmed = vec![(UNIT, 0)];
    for number in 0..FRAMES {
        let end = journal.append(TopicNumber::NONE, 0, &number.to_le_bytes()).unwrap();
        if number % 38 == 37 || number == FRAMES - 1 {
            journal.commit().unwrap();
            confirmed.push((end.0 as usize, number + 1));
        }
    }
    if is_closed {
        journal.seal().unwrap();
    }
    drop(journal);
    let name = format!("journal-{:020}.dq", 0);
    (name.clone(), disk.file(&name), confirmed)
}

#[test]
fn a_journal_cut_at_any_byte_is_refused_and_salvage_has_each_group_before_the_cut() {
    let check = |ahead_bytes, is_closed| {
        let (name, bytes, confirmed) = journal_of_one_segment(ahead_bytes, is_closed);
        let disk = SimulatedDisk::new();
        disk.put(&name, &bytes);
        assert_eq!(read(&disk).unwrap().1.len() as u64, FRAMES);
        for length in (0..bytes.len()).step_by(each(7)) {
            disk.put(&name, &bytes[..length]);
            let refused = read(&disk).unwrap_err();
            let text = refused.to_string();
            let OpenError::Damaged { file, offset, what } = refused else { panic!("cut to {length}: {text}") };
            assert!(file.ends_with(&name) && text.contains("dq check PATH --salvage NEW"), "cut to {length}: {text}");
            if length < UNIT {
                assert_eq!((offset, what.as_str()), (0, "the file ends within its header"));
                continue;
            }
            assert_eq!(offset, length as u64, "{text}");
            assert!(what.ends_with("of it were synced: its end was cut off"), "{text}");
            if length % (61 * each(7)) != 0 {
                continue;
            }
            assert!(matches!(open(&disk, &options()), Err(OpenError::Damaged { .. })), "cut to {length}");
            let mut frames = Vec::new();
            let salvaged = Journal::salvage(&disk, keep(&mut frames)).unwrap();
            let least = confirmed.iter().rev().find(|(end, _)| *end <= length).unwrap().1;
            let found = numbers(&frames);
            assert!(found.iter().copied().eq(0..found.len() as u64) && found.len() as u64 >= least, "cut to {length}");
            let cut = salvaged.unsound.last().expect("it says what is missing");
            assert_eq!((cut.offset, cut.what.as_str()), (length as u64, "the end of the file was cut off"));
            assert_eq!(salvaged.frames as usize, found.len());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check(0, false));
        scope.spawn(|| check(16 * UNIT as u64, false));
        check(16 * UNIT as u64, true);
    });
}

/// What a program wrote ahead and did not sync before the machine stopped may be gone, and no group counts on it.
#[test]
fn a_crash_that_leaves_a_file_shorter_than_it_was_lengthened_is_no_cut() {
    let run = |disk: &SimulatedDisk| {
        let mut confirmed = 0;
        let Ok((journal, ..)) = open(disk, &options()) else { return confirmed };
        for number in 0..40_u64 {
            journal.append(TopicNumber::NONE, 0, &[number as u8; 3_000]).unwrap();
            match journal.commit() {
                Ok(_) => confirmed = number + 1,
                Err(_) => break,
            }
        }
        confirmed
    };
    let newest = |disk: &SimulatedDisk| {
        let mut entries = disk.list().unwrap().into_iter();
        entries.rfind(|entry| entry.name.ends_with(".dq") && entry.name.starts_with("journal-"))
    };
    let mut shorter = 0;
    for number in 0.. {
        let disk = SimulatedDisk::new();
        disk.off_at(number);
        let confirmed = run(&disk);
        let cut = disk.cut(|_| Fate::Lost);
        if let (Some(before), Some(after)) = (newest(&disk), newest(&cut)) {
            shorter += u64::from(before.name == after.name && after.bytes < before.bytes);
        }
        let found = read(&cut).unwrap_or_else(|error| panic!("operation {number}: {error}")).1.len() as u64;
        assert!(found >= confirmed, "operation {number}: {found} of {confirmed}");
        if confirmed == 40 {
            break;
        }
    }
    assert!(shorter > 10, "{shorter}");
}

#[test]
fn a_copy_is_as_long_as_its_groups_say() {
    for is_closed in [false, true] {
        let (name, bytes, _) = journal_of_one_segment(16 * UNIT as u64, is_closed);
        let (disk, copy) = (SimulatedDisk::new(), SimulatedDisk::new());
        disk.put(&name, &bytes);
        let copied = Journal::copy(&disk, &copy).unwrap();
        assert_eq!(copied, copy.file(&name).len() as u64);
        assert_eq!(read(&copy).unwrap().1.len() as u64, FRAMES);
        copy.put(&name, &copy.file(&name)[..copied as usize - 1]);
        assert!(matches!(read(&copy), Err(OpenError::Damaged { .. })));
    }
}

#[test]
fn a_segment_that_is_not_the_last_and_ends_early_is_refused() {
    let (disk, journal) = opened();
    for number in 0..200_u64 {
        journal.append(TopicNumber::NONE, 0, &number.to_le_bytes()).unwrap();
        if number % 10 == 9 {
            journal.commit().unwrap();
        }
    }
    drop(journal);
    let name = format!("journal-{:020}.dq", 0);
    let bytes = disk.file(&name);
    let groups = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(groups > 7 * UNIT, "{groups}");
    let mut last = 0;
    for length in (0..groups).step_by(7) {
        disk.put(&name, &bytes[..length]);
        match read(&disk) {
            Err(OpenError::Damaged { offset, .. }) => {
                assert!((0..=length as u64).contains(&offset), "cut to {length}: {offset}");
                last = last.max(offset);
            }
            Err(OpenError::Missing { .. }) => {}
            other => panic!("cut to {length}: {other:?}"),
        }
    }
    assert!(last > 7 * UNIT as u64, "{last}");
    disk.put(&name, &bytes);
    assert_eq!(read(&disk).unwrap().1.len(), 200);
}

#[test]
fn a_segment_that_is_missing_is_refused() {
    let (disk, journal) = opened();
    for number in 0..100_u64 {
        journal.append(TopicNumber::NONE, 0, &[number as u8; 300]).unwrap();
        journal.commit().unwrap();
    }
    drop(journal);
    let mut names: Vec<_> = disk.list().unwrap().into_iter().map(|entry| entry.name).collect();
    names.retain(|name| name.ends_with(".dq"));
    assert!(names.len() > 8);
    for name in &names[..names.len() - 1] {
        let copy = disk.copy();
        copy.remove(name).unwrap();
        assert!(matches!(read(&copy), Err(OpenError::Missing { .. })), "{name}");
    }
}

//! The newest files of a journal that are missing.

use dq::store::file::disk::Disk;
use dq::store::file::journal::OpenError;
use dq_testing::disk::{Fate, SimulatedDisk};

use crate::fixture::{numbers, open, options, read};
use crate::opened;
use crate::snapshots::names;
use crate::written::append;

/// A journal of 60 frames, each confirmed, in many segments.
fn journal() -> SimulatedDisk {
    let (disk, journal) = opened();
    append(&journal, 0..60);
    disk
}

#[test]
fn the_newest_files_of_a_journal_are_missed() {
    let disk = journal().copy();
    let segments = names(&disk, "journal-");
    let watermark = segments.last().unwrap().replace("journal-", "newest-");
    assert_eq!(names(&disk, "newest-"), std::slice::from_ref(&watermark), "one watermark, of the newest segment");
    assert!(segments.len() > 5);
    for segment in segments.iter().rev() {
        disk.remove(segment).unwrap();
        for error in [read(&disk).unwrap_err(), open(&disk, &options()).unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(&error, OpenError::Missing { file, .. } if file == segments.last().unwrap()), "{text}");
            assert!(text.contains(&watermark) && text.contains("Restore the whole directory from a backup"), "{text}");
        }
    }
    assert_eq!(names(&disk, "newest-"), [watermark], "not even a journal without files begins again");
}

#[test]
fn a_watermark_is_durable_before_anything_in_its_segment_is_confirmed() {
    let disk = journal();
    for cut in [disk.cut(|_| Fate::Lost), disk.cut(|_| Fate::Kept)] {
        assert_eq!(numbers(&read(&cut).unwrap().1), (0..60).collect::<Vec<_>>());
        cut.remove(names(&cut, "journal-").last().unwrap()).unwrap();
        assert!(matches!(read(&cut), Err(OpenError::Missing { .. })));
    }
}

#[test]
fn an_opening_notes_the_segment_that_takes_the_place_of_the_last_group_and_removes_older_watermarks() {
    let disk = journal().copy();
    let before = names(&disk, "newest-");
    drop(open(&disk, &options()).unwrap());
    let after = names(&disk, "newest-");
    assert_eq!(after, [names(&disk, "journal-").pop().unwrap().replace("journal-", "newest-")]);
    assert_ne!(after, before);
    // Without a watermark, as after a power cut right before it was made, the next opening makes it.
    disk.remove(&after[0]).unwrap();
    drop(open(&disk, &options()).unwrap());
    assert_eq!(names(&disk, "newest-").len(), 1);
}

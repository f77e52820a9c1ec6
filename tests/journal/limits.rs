//! The limits of the format: what is sound and larger is refused with both numbers, and never cut.

use dq::store::file::journal::{JournalError, MAX_FRAME, MAX_GROUP, MAX_NAME, OpenError, TopicNumber};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{UNIT, content, numbers, open, options, read};
use crate::opened;

/// The bytes in front of the frames of a group.
const GROUP_HEADER: usize = 56;

fn name() -> String {
    format!("journal-{:020}.dq", 0)
}

/// The bytes of a journal of one frame, which say that this is all that was ever synced.
fn one_frame() -> Vec<u8> {
    let (disk, journal) = opened();
    journal.append(TopicNumber::NONE, 0, &content(0)).unwrap();
    journal.commit().unwrap();
    let mut bytes = disk.file(&name());
    bytes.truncate(2 * UNIT);
    bytes[UNIT + 48..UNIT + GROUP_HEADER].fill(0);
    bytes
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// A journal whose only group has one frame with content of this many bytes, with CRCs that fit.
fn with_frame_of(length: usize) -> SimulatedDisk {
    let mut bytes = one_frame();
    let body = 13 + length;
    bytes.resize((UNIT + GROUP_HEADER + body).next_multiple_of(UNIT), 0);
    put_u32(&mut bytes, UNIT + GROUP_HEADER + 4, length as u32);
    let frame = crc32fast::hash(&bytes[UNIT + GROUP_HEADER + 4..UNIT + GROUP_HEADER + body]);
    put_u32(&mut bytes, UNIT + GROUP_HEADER, frame);
    seal(&mut bytes, body);
    let disk = SimulatedDisk::new();
    disk.put(&name(), &bytes);
    disk
}

/// Puts the length of the body into the header of the group, and CRCs that fit.
fn seal(bytes: &mut [u8], body: usize) {
    let end = bytes.len().min(UNIT + GROUP_HEADER + body);
    put_u32(bytes, UNIT + 32, body as u32);
    let crc = crc32fast::hash(&bytes[UNIT + GROUP_HEADER..end]);
    put_u32(bytes, UNIT + 40, crc);
    let crc = crc32fast::hash(&bytes[UNIT + 8..UNIT + GROUP_HEADER]);
    put_u32(bytes, UNIT + 4, crc);
}

fn refused(disk: &SimulatedDisk, part: &str, found: usize, limit: usize) {
    let before = disk.file(&name());
    for error in [read(disk).unwrap_err(), open(disk, &options()).unwrap_err()] {
        let text = error.to_string();
        let OpenError::Beyond { what, bytes, most, .. } = error else { panic!("{text}") };
        assert_eq!((what, bytes, most), (part, found as u64, limit as u64));
        let says = format!("has a {part} of {found} bytes at offset ");
        assert!(text.contains(&says) && text.ends_with("use the version of dq that wrote it"), "{text}");
    }
    assert!(disk.file(&name()) == before, "nothing was cut");
}

#[test]
fn a_sound_frame_above_the_limit_is_refused_with_both_numbers() {
    assert_eq!(read(&with_frame_of(MAX_FRAME)).unwrap().1[0].bytes.len(), MAX_FRAME);
    refused(&with_frame_of(MAX_FRAME + 1), "frame", MAX_FRAME + 1, MAX_FRAME);
}

#[test]
fn a_sound_last_group_above_the_limit_is_refused_with_both_numbers_and_never_cut() {
    let with_group_of = |body| {
        let mut bytes = one_frame();
        seal(&mut bytes, body);
        let disk = SimulatedDisk::new();
        disk.put(&name(), &bytes);
        disk
    };
    let (recovered, frames) = read(&with_group_of(MAX_GROUP)).unwrap();
    assert_eq!((recovered.torn.is_some(), numbers(&frames)), (true, vec![]), "a header whose frames were not written");
    refused(&with_group_of(MAX_GROUP + 1), "group", MAX_GROUP + 1, MAX_GROUP);
}

#[test]
fn a_frame_at_the_limit_is_appended_and_read_and_one_above_it_is_refused() {
    let (disk, journal) = opened();
    let topic = journal.topic(&"x".repeat(MAX_NAME)).unwrap();
    journal.reserve(1).unwrap();
    journal.append(topic, 0, &vec![7; MAX_FRAME]).unwrap();
    assert_eq!(journal.append(topic, 0, &vec![7; MAX_FRAME + 1]), Err(JournalError::TooLarge { bytes: MAX_FRAME + 1 }));
    assert_eq!(journal.topic(&"x".repeat(MAX_NAME + 1)), Err(JournalError::TooLarge { bytes: MAX_NAME + 1 }));
    journal.commit().unwrap();
    assert_eq!(read(&disk).unwrap().1[0].bytes.len(), MAX_FRAME);
}

#[test]
fn the_document_of_the_format_has_the_limits_of_the_code() {
    let document = include_str!("../../docs/internals/journal.md");
    let mebibytes = |bytes: usize| (bytes >> 20, bytes % (1 << 20));
    let (group, rest) = mebibytes(MAX_GROUP);
    assert_eq!((mebibytes(MAX_FRAME).1, rest), (0, 64 << 10));
    let grouped = |number: usize| format!("{},{:03}", number / 1_000, number % 1_000);
    for sentence in [
        format!("units of {} bytes", grouped(UNIT)),
        format!("bytes of the frames: at most {group} MiB + 64 KiB"),
        format!("bytes of the content: at most {} MiB", MAX_FRAME >> 20),
        format!("UTF-8, at most {} bytes", grouped(MAX_NAME)),
        format!("more memory than the largest group ({group} MiB)"),
    ] {
        assert!(document.contains(&sentence), "journal.md lacks: {sentence}");
    }
}

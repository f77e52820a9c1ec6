//! A mutation loop: files of kept directories are changed in all the ways that occur to disks, people and enemies, and read
//! back. No input may panic, and without a forged CRC no input may lead to frames that were never appended, or leave a gap.

use dq::store::file::disk::Disk;
use dq::store::file::journal::{Journal, OpenError};
use dq_testing::disk::SimulatedDisk;

use crate::corpora::Corpus;
use crate::early::{Early, files_of};
use crate::fixture::{UNIT, keep, numbers, open, options, read};
use crate::random::Random;

/// What the runs of a loop found.
#[derive(Debug, Default)]
pub struct Counts {
    pub runs: u64,
    pub intact: u64,
    pub torn: u64,
    pub refused: u64,
    pub forged: u64,
}

/// The bytes in front of the frames of a group.
const GROUP_HEADER: usize = 56;

/// Numbers that are wrong in lengths, counts and positions.
const NUMBERS: [u64; 14] = [
    0,
    1,
    12,
    13,
    55,
    56,
    511,
    512,
    4_095,
    4_096,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// How a file was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Some bytes of it.
    Bytes,
    /// Its end is missing, or the file.
    Shorter,
    /// Its bytes, with CRCs that fit.
    Forged,
}

/// Changes one corpus, reads it, and judges.
pub fn run(corpora: &[Corpus], random: &Random, counts: &mut Counts) {
    let corpus = &corpora[random.below(corpora.len())];
    let disk = corpus.disk();
    let early = followed_early(corpus, random);
    let mut changes = Vec::new();
    for _ in 0..=random.below(3) {
        changes.push(change(&disk, corpus, random));
    }
    counts.runs += 1;
    let is_forged = changes.contains(&Change::Forged);
    let is_shorter = changes.contains(&Change::Shorter);
    counts.forged += u64::from(is_forged);
    match read(&disk) {
        Ok((recovered, frames)) => {
            counts.intact += u64::from(recovered.torn.is_none());
            counts.torn += u64::from(recovered.torn.is_some());
            if !is_forged {
                let found = numbers(&frames);
                assert!(found.iter().copied().eq(0..found.len() as u64), "frames that were never appended: {found:?}");
                // Two changes may take a group and what names it as synced.
                let is_provable = changes.len() == 1;
                let least = if is_provable { corpus.synced.max(corpus.in_snapshot) } else { corpus.in_snapshot };
                let most = corpus.frames;
                assert!((least..=most).contains(&(found.len() as u64)), "{} of {least} to {most}", found.len());
            }
        }
        Err(OpenError::Held { .. } | OpenError::Io { .. } | OpenError::Refused { .. }) => {
            panic!("nothing of that kind")
        }
        Err(_) => counts.refused += 1,
    }
    // What can be read can be opened, and goes on; what cannot be read cannot be opened.
    let before = read(&disk).ok().map(|(_, frames)| frames.len());
    let read_on = early.map(|early| (early.frames.len(), early.read_on(&files_of(&disk))));
    if let Some((known, Ok((true, frames)))) = read_on
        && !is_forged
    {
        let found = numbers(&frames);
        assert!(found.iter().copied().eq(0..found.len() as u64), "frames that were never appended: {found:?}");
        assert!((known..=corpus.frames as usize).contains(&found.len()), "{} after {known}", found.len());
        // Damage of what it had read before is no obstacle, and of the rest it is told.
        let whole = before.map_or(corpus.frames as usize, |fresh| fresh.max(known));
        assert!(changes.len() > 1 || is_shorter || found.len() == whole, "{} of {whole}", found.len());
    }
    // Whoever follows it reads the same, and then nothing more.
    let mut followed = Vec::new();
    let follower = Journal::follow(&disk, keep(&mut followed)).ok().flatten();
    let is_followed = follower.is_some_and(|mut follower| follower.read_on(&disk, keep(&mut followed)).is_ok());
    assert!(before.is_none() || (is_followed && before == Some(followed.len())), "{before:?}, {is_followed}");
    let after = open(&disk, &options()).ok().map(|(_, _, frames)| frames.len());
    assert_eq!(before, after);
    let again = open(&disk, &options()).ok().map(|(_, _, frames)| frames.len());
    if !is_forged {
        assert_eq!(after, again);
    }
}

/// Follows the directory of a corpus as it was at some time before it was complete.
fn followed_early(corpus: &Corpus, random: &Random) -> Option<Early> {
    let segments: Vec<_> = corpus.files.iter().filter(|(name, _)| name.starts_with("journal-")).collect();
    let (name, bytes) = segments[random.below(segments.len())];
    Early::follow(&corpus.files, name, UNIT * (1 + random.below(bytes.len() / UNIT)))
}

fn change(disk: &SimulatedDisk, corpus: &Corpus, random: &Random) -> Change {
    let (name, _) = &corpus.files[random.below(corpus.files.len())];
    if !disk.list().unwrap().iter().any(|entry| entry.name == *name) {
        return Change::Shorter;
    }
    let mut bytes = disk.file(name);
    let length = bytes.len();
    if length < UNIT + 1_024 {
        return Change::Bytes;
    }
    let mut change = Change::Bytes;
    match random.below(10) {
        0 | 1 => {
            let bit = random.below(length * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        2 => {
            let at = random.below(length - 8);
            let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
            let width = [1, 4, 8][random.below(3)];
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        3 => {
            let size = [512, UNIT][random.below(2)];
            let at = random.below(length / size) * size;
            bytes[at..at + size].fill([0, 0xFF, random.below(256) as u8][random.below(3)]);
        }
        4 => {
            let size = [512, UNIT][random.below(2)];
            let (from, to) = (random.below(length / size) * size, random.below(length / size) * size);
            bytes.copy_within(from..from + size, to);
        }
        5 => bytes.extend((0..random.below(2_000)).map(|_| random.below(256) as u8)),
        6 => {
            bytes.truncate(random.below(length));
            change = Change::Shorter;
        }
        7 if random.below(4) == 0 => {
            disk.remove(name).unwrap();
            return Change::Shorter;
        }
        _ => {
            forge(&mut bytes, random);
            change = Change::Forged;
        }
    }
    disk.put(name, &bytes);
    change
}

/// Puts a wrong number into a header, a group or a frame, and makes the CRCs fit.
fn forge(bytes: &mut [u8], random: &Random) {
    let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
    if random.below(4) == 0 {
        let at = 12 + random.below(48);
        bytes[at..at + 4].copy_from_slice(&number[..4]);
        let crc = crc32fast::hash(&bytes[12..512]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        return;
    }
    let starts: Vec<usize> =
        (UNIT..bytes.len() - GROUP_HEADER).step_by(UNIT).filter(|at| bytes[*at..].starts_with(b"dq")).collect();
    let Some(start) = (!starts.is_empty()).then(|| starts[random.below(starts.len())]) else { return };
    let end = bytes
        .len()
        .min(start + GROUP_HEADER + u32::from_le_bytes(bytes[start + 32..start + 36].try_into().unwrap()) as usize);
    if random.below(2) == 0 {
        let at = start + 8 + random.below(GROUP_HEADER - 8 - 4 + 1);
        bytes[at..at + 4].copy_from_slice(&number[..4]);
    } else if end > start + GROUP_HEADER + 13 {
        // The first frame of the group: its length, kind, topic or bytes.
        let frame = start + GROUP_HEADER;
        let at = frame + 4 + random.below(9);
        let width = (end - at).min(4);
        bytes[at..at + width].copy_from_slice(&number[..width]);
        let length = u32::from_le_bytes(bytes[frame + 4..frame + 8].try_into().unwrap()) as usize;
        if let Some(frame_end) = frame.checked_add(13 + length).filter(|frame_end| *frame_end <= end) {
            let crc = crc32fast::hash(&bytes[frame + 4..frame_end]);
            bytes[frame..frame + 4].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[start + GROUP_HEADER..end]);
        bytes[start + 40..start + 44].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes[start + 8..start + GROUP_HEADER]);
    bytes[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

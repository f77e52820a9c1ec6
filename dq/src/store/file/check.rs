//! For a directory that no process uses: whether it is sound, and making it small.

use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::journal::Torn;
use super::opening::try_open;
use super::options::FileOptions;
use super::parts::{load, parts_of};
use super::reading::{CheckError, bytes_of, existing, store_at};
use crate::environment::WallClock;
use crate::job::limits::{FENCE, OverLimit};
use crate::job::{Fence, JobId, TopicKey};
use crate::store::memory::ReplayPart;
use crate::store::{StoreError, TopicCounts};

/// How many jobs over a limit are named of each topic.
const MAX_OVER: usize = 100;

/// What a sound directory holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The topics that hold anything, in order.
    pub topics: Vec<TopicChecked>,
    /// The bytes of its files.
    pub bytes: u64,
    /// How many steps and pages of snapshots were read.
    pub frames: u64,
    /// Whether it was closed cleanly.
    pub is_sealed: bool,
    /// What the next opening cuts from the end: it was being written when the process or the machine stopped, or is being written
    /// now.
    pub torn: Option<Torn>,
    /// Jobs that no node will run, because another program made them larger than dq does: topic, id and why, of a topic the first 100.
    pub over_limit: Vec<(TopicKey, JobId, OverLimit)>,
    /// The fence above which every later one should be, if it is over its limit: the next ones follow the clock again.
    pub large_fence: Option<Fence>,
}

/// What a sound topic holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TopicChecked {
    /// The topic.
    pub topic: TopicKey,
    /// Its jobs by state.
    pub counts: TopicCounts,
}

/// Reads the whole directory and checks it: every frame is sound, every change fits the one before it, and each job is in exactly one
/// place. Changes nothing. A process may use the directory meanwhile; then the check is of a moment during it, and of a large
/// directory, which is read part by part, of several. Blocks; it needs less than 300 MiB of memory, however many jobs there are.
///
/// # Errors
/// [`CheckError`] names the first thing that is wrong.
pub fn check(path: impl AsRef<Path>) -> Result<Checked, CheckError> {
    check_on(&*existing(path.as_ref())?)
}

/// As [`check()`], on a disk that the program made.
///
/// # Errors
/// As [`check()`].
pub fn check_on(disk: &dyn Disk) -> Result<Checked, CheckError> {
    let mut parts = parts_of(disk)?.into_iter().map(|part| check_part(disk, part));
    let first = parts.next().expect("there is a part")?;
    parts.try_fold(first, |checked, part| Ok(checked.with(part?)))
}

impl Checked {
    /// With the jobs of another part.
    fn with(mut self, other: Self) -> Self {
        for TopicChecked { topic, counts } in other.topics {
            match self.topics.binary_search_by(|known| known.topic.cmp(&topic)) {
                Ok(at) => self.topics[at].counts.add(&counts),
                Err(at) => self.topics.insert(at, TopicChecked { topic, counts }),
            }
        }
        self.frames = self.frames.max(other.frames);
        self.over_limit.extend(other.over_limit);
        Self { topics: self.topics, frames: self.frames, over_limit: self.over_limit, ..other }
    }
}

fn check_part(disk: &dyn Disk, part: ReplayPart) -> Result<Checked, CheckError> {
    let (memory, read) = load(disk, part)?;
    if read.is_new {
        return Err(CheckError::NoStore { path: disk.path() });
    }
    let inconsistent = |topic: &TopicKey, what: String| {
        let (path, topic) = (disk.path(), topic.clone());
        CheckError::Inconsistent { path, topic, what }
    };
    let (mut topics, mut over_limit) = (Vec::new(), Vec::new());
    for topic in memory.known_topics() {
        let counts = memory.counts_now(&topic)?;
        let of_all = counts.delayed + counts.running + counts.unacked + counts.dead + counts.done;
        if !memory.is_consistent(&topic)? {
            return Err(inconsistent(&topic, format!("its {of_all} jobs and their places differ")));
        }
        let over = memory.over_limit(&topic, MAX_OVER)?.into_iter();
        over_limit.extend(over.map(|(id, over)| (topic.clone(), id, over)));
        if of_all + counts.broadcasts > 0 {
            topics.push(TopicChecked { topic, counts });
        }
    }
    let (highest, reserved) = (memory.highest_fence()?, Fence(read.reserved));
    let large_fence = Some(reserved).filter(|fence| FENCE.check_kept(fence.0).is_err());
    if highest > reserved
        && let Some(first) = topics.first()
    {
        return Err(inconsistent(&first.topic, format!("fence {} is above the reserved {}", highest.0, reserved.0)));
    }
    Ok(Checked {
        topics,
        bytes: bytes_of(disk)?,
        frames: read.frames,
        is_sealed: read.is_sealed,
        torn: read.torn,
        over_limit,
        large_fence,
    })
}

/// Replaces the whole journal by a snapshot. Returns the bytes of the files before and after. Blocks.
///
/// # Errors
/// [`CheckError`]; also while a process uses the directory, which it names. The store is then as it was.
pub fn compact(path: impl AsRef<Path>) -> Result<(u64, u64), CheckError> {
    let disk = store_at(path.as_ref())?;
    let before = bytes_of(&*disk)?;
    let opened = try_open(&disk, &FileOptions::new(Arc::new(WallClock)))?;
    opened.snapshots.take().map_err(|error| StoreError::Other { operation: "compact", source: error.into() })?;
    drop(opened);
    Ok((before, bytes_of(&*disk)?))
}

//! For a directory that no process uses: whether it is sound, and making it small.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::disk::Disk;
use super::journal::{Fault, Journal, OpenError, Torn};
use super::opening::{Loader, try_open};
use super::options::FileOptions;
use crate::environment::WallClock;
use crate::job::limits::{FENCE, OverLimit};
use crate::job::{Fence, JobId, TopicKey};
use crate::store::memory::{CHANGES_VERSION, MemoryStore};
use crate::store::{StoreError, TopicCounts};

/// How many jobs over a limit are named of each topic.
const MOST_OVER: usize = 100;

/// How often the files are read again that a running process replaces meanwhile.
const READINGS: usize = 10;

/// Why a directory is not sound, or could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no such directory.
    #[error("{path} is no directory")]
    NoDirectory {
        /// Its path.
        path: String,
    },
    /// The directory holds no journal.
    #[error("{path} holds no store: it has no journal")]
    NoStore {
        /// Its path.
        path: String,
    },
    /// A copy needs an empty directory.
    #[error("{path} is not empty: name a directory that does not exist yet")]
    NotEmpty {
        /// Its path.
        path: String,
    },
    /// The files are damaged, foreign or of a newer version, or cannot be read.
    #[error(transparent)]
    Files(#[from] OpenError),
    /// The files can be read, but a job is in no place or in several, or a fence is beyond what was reserved: a defect of dq.
    #[error("topic {topic} of {path} is wrong, which is a defect of dq: {what}")]
    Inconsistent {
        /// The path of the directory.
        path: String,
        /// The topic.
        topic: TopicKey,
        /// What is wrong.
        what: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
    /// The fence above which every later one is, if no import may bring it.
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
/// place. Changes nothing. A process may use the directory meanwhile; then the check is of a moment during it. Blocks; it needs as
/// much memory as the store.
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
    repeated(|| check_once(disk))
}

/// Reads again as long as a running process removes files meanwhile, which a snapshot has replaced.
pub(super) fn repeated<T>(mut read: impl FnMut() -> Result<T, CheckError>) -> Result<T, CheckError> {
    for _ in 1..READINGS {
        match read() {
            Err(CheckError::Files(OpenError::Io(Fault { source, .. }))) if source.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
    }
    read()
}

fn check_once(disk: &dyn Disk) -> Result<Checked, CheckError> {
    let memory = MemoryStore::new(Arc::new(WallClock));
    let mut loader = Loader::new(&memory);
    let read = Journal::read(disk, u32::from(CHANGES_VERSION), |_, frame| loader.load(&frame))?;
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
        let over = memory.over_limit(&topic, MOST_OVER)?.into_iter();
        over_limit.extend(over.map(|(id, over)| (topic.clone(), id, over)));
        if of_all + counts.broadcasts > 0 {
            topics.push(TopicChecked { topic, counts });
        }
    }
    let (highest, reserved) = (memory.highest_fence()?, Fence(read.reserved));
    let is_large = |fence: &Fence| FENCE.check(fence.0).is_err();
    let large_fence = Some(reserved).filter(is_large);
    // A large fence above the reservation is one from before a repair.
    if highest > reserved
        && !is_large(&highest)
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
    let disk = existing(path.as_ref())?;
    if Journal::is_missing(&*disk)? {
        return Err(CheckError::NoStore { path: disk.path() });
    }
    let before = bytes_of(&*disk)?;
    let opened = try_open(Arc::clone(&disk), &FileOptions::new(Arc::new(WallClock)))?;
    opened.snapshots.take().map_err(|error| StoreError::Other { operation: "compact", source: error.into() })?;
    drop(opened);
    Ok((before, bytes_of(&*disk)?))
}

pub(super) fn bytes_of(disk: &dyn Disk) -> Result<u64, CheckError> {
    let listed = disk.list().map_err(|source| OpenError::Io(Fault { file: disk.path(), doing: "list", source }))?;
    Ok(listed.iter().map(|entry| entry.bytes).sum())
}

/// The directory, which must exist: a check makes none.
pub(super) fn existing(path: &Path) -> Result<Arc<dyn Disk>, CheckError> {
    if !path.is_dir() {
        return Err(CheckError::NoDirectory { path: path.display().to_string() });
    }
    directory(path)
}

/// The directory, which is made if it is missing.
pub(super) fn directory(path: &Path) -> Result<Arc<dyn Disk>, CheckError> {
    #[cfg(unix)]
    return match super::disk::Directory::open(path) {
        Ok(directory) => Ok(Arc::new(directory)),
        Err(source) => Err(OpenError::Io(Fault { file: path.display().to_string(), doing: "open", source }).into()),
    };
    #[cfg(not(unix))]
    Err(super::opening::halted(&"`file:` needs a Unix system").into())
}

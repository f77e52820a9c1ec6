//! Writes what is sound of a damaged directory to a new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::backup::must_be_empty;
use super::check::{Checked, check_on};
use super::disk::Disk;
use super::journal::{Frame, Journal, Salvaged, Unsound};
use super::loader::Loader;
use super::opening::journal_options;
use super::options::FileOptions;
use super::parts::parts_read_by;
use super::reading::{CheckError, directory, store_at};
use super::snapshots::{Failed, write_all};
use crate::environment::WallClock;
use crate::job::{JobId, TopicKey};
use crate::store::memory::{MemoryStore, ReplayPart};
use crate::store::{Store, StoreError};

/// What was saved of a damaged directory, and what was not.
#[derive(Debug)]
#[non_exhaustive]
pub struct Saved {
    /// What the new directory holds.
    pub checked: Checked,
    /// The ranges that are not sound.
    pub unsound: Vec<Unsound>,
    /// The jobs that later changes name and that are in no sound range.
    pub lost: Vec<(TopicKey, JobId)>,
}

/// Writes what is sound of a damaged directory to a new one, as a store that opens, and tells what is not sound. A job whose end is in a
/// damaged range may be there again. The directory stays as it is; no process may use it. Blocks; it needs less than 300 MiB of memory,
/// however many jobs there are, because it reads a large directory part by part.
///
/// # Errors
/// [`CheckError`]: there is no such directory, `to` is not empty, a disk refuses, or another version of dq wrote the files.
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Saved, CheckError> {
    let from = store_at(from.as_ref())?;
    let parts = parts_read_by(&*from, |part| Ok(read(&*from, part)?.memory))?;
    save(&*from, &directory(to.as_ref())?, parts)
}

/// As [`salvage`], on disks that the program made, in so many parts.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(from: &dyn Disk, to: &Arc<dyn Disk>, parts: u64) -> Result<Saved, CheckError> {
    save(from, to, ReplayPart::each(parts).collect())
}

/// Writes the parts to a new directory, as one snapshot. Until it is complete, the directory holds no job.
fn save(from: &dyn Disk, to: &Arc<dyn Disk>, parts: Vec<ReplayPart>) -> Result<Saved, CheckError> {
    must_be_empty(&**to)?;
    let options = journal_options(&FileOptions::new(Arc::new(WallClock)));
    let nothing = |_, _: Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::clone(to), &options, nothing)?;
    let journal = Arc::new(journal);
    let other = |error: Failed| StoreError::Other { operation: "salvage", source: error.into() };
    let mut writer = journal.snapshot().map_err(|error| other(error.into()))?;
    let (mut fence, mut bytes, mut unsound, mut lost) = (0, 0, None, Vec::new());
    for part in parts {
        let saved = read(from, part)?;
        let number = |topic: &TopicKey| Ok(journal.topic(&topic.to_string())?);
        write_all(&saved.memory, &mut writer, number).map_err(other)?;
        fence = saved.memory.highest_fence()?.0.max(saved.read.reserved).max(fence);
        bytes += saved.memory.memory_use().unwrap_or_default().bytes;
        lost.extend(saved.lost);
        // Each part is read from the same files.
        unsound.get_or_insert(saved.read.unsound);
    }
    lost.sort();
    journal.note_memory(bytes);
    let finished = journal.reserve(fence).map_err(Failed::from).and_then(|_| Ok(writer.finish()?));
    finished.and_then(|_| Ok(journal.seal()?)).map_err(other)?;
    Ok(Saved { checked: check_on(&**to)?, unsound: unsound.unwrap_or_default(), lost })
}

/// What is sound of one part.
struct Sound {
    memory: MemoryStore,
    read: Salvaged,
    lost: Vec<(TopicKey, JobId)>,
}

fn read(from: &dyn Disk, part: ReplayPart) -> Result<Sound, CheckError> {
    let memory = MemoryStore::new(Arc::new(WallClock));
    let mut loader = Loader::new(&memory, part);
    let mut named = BTreeSet::new();
    let read = Journal::salvage(from, |_, frame| {
        let (topic, passed) = loader.load_known(&frame)?;
        named.extend(passed.changed.into_iter().map(|id| (topic.clone(), id)));
        for id in passed.gone {
            named.remove(&(topic.clone(), id));
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    })?;
    let mut lost = Vec::new();
    for (topic, id) in named {
        if !memory.has(&topic, &id)? {
            lost.push((topic, id));
        }
    }
    Ok(Sound { memory, read, lost })
}

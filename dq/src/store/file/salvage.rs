//! Writes what is sound of a damaged directory to a new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::backup::must_be_empty;
use super::check::{Checked, check_on};
use super::disk::Disk;
use super::journal::{Journal, Unsound};
use super::loader::Loader;
use super::opening::journal_options;
use super::options::{Commits, FileOptions};
use super::reading::{CheckError, directory, existing};
use super::sink::JournalSink;
use super::snapshots::Snapshots;
use crate::environment::WallClock;
use crate::job::{Fence, JobId, TopicKey};
use crate::store::StoreError;
use crate::store::memory::{CHANGES_VERSION, MemoryStore, Part, Sink};

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
/// damaged range may be there again. The directory stays as it is; no process may use it. Blocks, and needs as much memory as the store.
///
/// # Errors
/// [`CheckError`]: there is no such directory, `to` is not empty, a disk refuses, or a newer version of dq wrote the files.
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Saved, CheckError> {
    let from = existing(from.as_ref())?;
    if Journal::is_missing(&*from)? {
        return Err(CheckError::NoStore { path: from.path() });
    }
    salvage_on(&*from, &directory(to.as_ref())?)
}

/// As [`salvage`], on disks that the program made.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_on(from: &dyn Disk, to: &Arc<dyn Disk>) -> Result<Saved, CheckError> {
    must_be_empty(&**to)?;
    let mut options = FileOptions::new(Arc::new(WallClock));
    options.commits = Commits::ByHand;
    let sink = Arc::new(JournalSink::new(&options));
    let memory = MemoryStore::journaled(Arc::clone(&options.clock), Arc::clone(&sink) as Arc<dyn Sink>);
    let mut loader = Loader::new(&memory, Part::WHOLE);
    let mut lost = BTreeSet::new();
    let read = Journal::salvage(from, u32::from(CHANGES_VERSION), |_, frame| {
        let (topic, passed) = loader.load_known(&frame)?;
        lost.extend(passed.changed.into_iter().map(|id| (topic.clone(), id)));
        for id in passed.gone {
            lost.remove(&(topic.clone(), id));
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    })?;
    let mut really_lost = Vec::new();
    for (topic, id) in lost {
        if !memory.has(&topic, &id)? {
            really_lost.push((topic, id));
        }
    }
    let fence = memory.highest_fence()?.max(Fence(read.reserved));
    memory.raise_fence(fence)?;
    let nothing = |_, _: super::journal::Frame<'_>| Ok::<_, std::io::Error>(());
    let (journal, _) = Journal::open(Arc::clone(to), &journal_options(&options), nothing)?;
    let other = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Other { operation: "salvage", source };
    journal.reserve(fence.0).map_err(|error| other(error.into()))?;
    let journal = Arc::new(journal);
    sink.start(Arc::clone(&journal));
    Snapshots::new(memory, Arc::clone(&sink), 0).take().map_err(|error| other(error.into()))?;
    journal.seal().map_err(|error| other(error.into()))?;
    Ok(Saved { checked: check_on(&**to)?, unsound: read.unsound, lost: really_lost })
}

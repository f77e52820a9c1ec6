//! The directories that this process has open: a second store of the same directory is the same store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::disk::{Directory, Disk};
use super::journal::OpenError;
use super::opened::Opened;
use super::opening::{halted, not_opened, this_process, try_open};
use super::options::FileOptions;
use crate::store::StoreError;

/// The open directories, by their path without links.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Opened>>> = Mutex::new(BTreeMap::new());

/// How often to try again while a store of this process is being closed, and how long to wait in between: ten seconds in all.
const TRIES: usize = 5_000;
const PAUSE: Duration = Duration::from_millis(2);

/// The store in this directory, which this process may have open already. Blocks.
///
/// # Errors
/// [`StoreError::Held`] and [`StoreError::Halted`], with what to do.
pub(super) fn open(path: &Path, options: &FileOptions) -> Result<Arc<Opened>, StoreError> {
    let cannot = |error| halted(&format!("cannot open the directory {}: {error}", path.display()));
    let directory = Directory::open(path).map_err(cannot)?;
    if let Ok(Some(kind)) = directory.network() {
        tracing::warn!(
            path = %path.display(),
            kind,
            "the store is on a network file system, where locks and syncs may promise less; use a local disk"
        );
    }
    for exposure in directory.exposures().unwrap_or_default() {
        tracing::warn!(path = %path.display(), exposure, "another user of this machine may change the files of the store");
    }
    let key = PathBuf::from(directory.path());
    let disk: Arc<dyn Disk> = Arc::new(directory);
    for left in (0..TRIES).rev() {
        // One entry is the only change, so a panic in another thread cannot have left the map half-changed. The lock is held while
        // a directory is read: two factories that start together share the store.
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(opened);
        }
        match try_open(&disk, options) {
            Ok(opened) => {
                let opened = Arc::new(opened);
                open.retain(|_, opened| opened.strong_count() > 0);
                open.insert(key, Arc::downgrade(&opened));
                return Ok(opened);
            }
            Err(OpenError::Held { holder, .. }) if left > 0 && holder.process == Some(this_process()) => {}
            Err(error) => return Err(not_opened(&error)),
        }
        drop(open);
        std::thread::sleep(PAUSE);
    }
    unreachable!("the last try returns")
}

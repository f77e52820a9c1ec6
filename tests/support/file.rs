//! Folders that go with the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of its own below the system's folder for temporary files. Dropping it removes it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A name that no other folder has; the folder itself is not made.
    pub fn unmade() -> Self {
        Self::below(std::env::temp_dir())
    }

    /// The same on a file system in memory, where the machine has one: for a program whose output depends on a disk that answers
    /// within `call_timeout`.
    pub fn in_memory() -> Self {
        let memory = PathBuf::from("/dev/shm");
        Self::below(if memory.is_dir() { memory } else { std::env::temp_dir() })
    }

    fn below(parent: PathBuf) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(parent.join(format!("dq-file-{}-{number}", std::process::id())))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URL of a store in it.
    pub fn url(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

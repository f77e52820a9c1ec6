//! The folder for the files of a storm.

use std::path::{Path, PathBuf};

/// A new folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates a folder in the system's folder for temporary files.
    ///
    /// # Panics
    /// If that cannot be written.
    pub fn create(seed: u64) -> Self {
        let path = std::env::temp_dir().join(format!("dq-storm-{seed}-{}", std::process::id()));
        // An earlier process with the same id may have left the folder behind.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder can be created");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it.
    pub fn remove(&self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

//! The folder of a benchmark on a disk.

use std::path::{Path, PathBuf};

/// A folder of this process alone. It does not exist yet; dropping this removes it with what is in it.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// One in `parent`. `env!("CARGO_TARGET_TMPDIR")` is beside the build, so on the disk of the machine and not in memory.
    pub fn new(parent: &str, name: &str) -> Self {
        let folder = Path::new(parent).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

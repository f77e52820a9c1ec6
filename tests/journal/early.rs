//! Followers that had read a part of a directory before its files changed.

use dq::store::file::disk::Disk;
use dq::store::file::journal::{Follower, Journal, OpenError};
use dq_testing::disk::SimulatedDisk;

use crate::fixture::{Read, keep};

/// The names and bytes of all files of a journal.
pub type Files = [(String, Vec<u8>)];

/// The files of a journal on a disk.
pub fn files_of(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().unwrap().into_iter().map(|entry| entry.name).filter(|name| name.ends_with(".dq"));
    names.map(|name| (name.clone(), disk.file(&name))).collect()
}

/// A follower, and what it has read.
pub struct Early {
    disk: SimulatedDisk,
    follower: Follower,
    pub frames: Vec<Read>,
}

impl Early {
    /// Follows the directory as it was when so many bytes of one of its segments were written, with zeros after them, and there were no
    /// later segments. `None` if there was no journal that could be read.
    pub fn follow(files: &Files, segment: &str, length: usize) -> Option<Self> {
        let disk = SimulatedDisk::new();
        for (name, bytes) in files {
            let is_later = name.starts_with("newest-") || (name.starts_with("journal-") && name.as_str() > segment);
            if !is_later {
                let mut bytes = bytes.clone();
                if name == segment && length < bytes.len() {
                    bytes[length..].fill(0);
                }
                disk.put(name, &bytes);
            }
        }
        let mut frames = Vec::new();
        let follower = Journal::follow(&disk, keep(&mut frames)).ok().flatten()?;
        Some(Self { disk, follower, frames })
    }

    /// Reads on in these files, which took the place of those before.
    pub fn read_on(mut self, files: &Files) -> Result<(bool, Vec<Read>), OpenError> {
        for (name, _) in files_of(&self.disk) {
            if files.iter().all(|(other, _)| *other != name) {
                self.disk.remove(&name).unwrap();
            }
        }
        files.iter().for_each(|(name, bytes)| self.disk.put(name, bytes));
        let is_followed = self.follower.read_on(&self.disk, keep(&mut self.frames))?;
        Ok((is_followed, self.frames))
    }
}

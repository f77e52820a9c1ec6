//! What was written and not yet synced.

use std::collections::BTreeMap;

/// Names a file, whatever its name is.
pub(super) type Inode = u64;

/// The smallest thing that a power cut may take.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    /// A whole unit of a file, as programs saw it after a write into it.
    Bytes(Inode, u64, Vec<u8>),
    /// A name that a file got.
    Named(String, Inode),
    /// A name that went.
    Unnamed(String),
    /// A file that got the second name instead of the first.
    Renamed(String, String, Inode),
}

/// What a power cut does to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It had reached the disk.
    Kept,
    /// It had not.
    Lost,
    /// The whole unit has neither the old bytes nor the new ones, not even where nothing was written. For a name this is the same as [`Fate::Lost`].
    Garbled,
}

/// What is on the platter.
#[derive(Debug, Clone, Default)]
pub(super) struct Durable {
    pub(super) names: BTreeMap<String, Inode>,
    pub(super) files: BTreeMap<Inode, Vec<u8>>,
}

impl Durable {
    /// Lets a unit reach the disk.
    pub(super) fn apply(&mut self, unit: &Unit, is_garbled: bool) {
        match unit {
            Unit::Bytes(inode, offset, bytes) => {
                let file = self.files.entry(*inode).or_default();
                let mut bytes = bytes.clone();
                if is_garbled {
                    bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte ^= (at as u8).wrapping_mul(89) | 1);
                }
                write(file, *offset, &bytes);
            }
            Unit::Named(name, inode) => {
                self.names.insert(name.clone(), *inode);
                self.files.entry(*inode).or_default();
            }
            Unit::Unnamed(name) => {
                self.names.remove(name);
            }
            Unit::Renamed(from, to, inode) => {
                self.names.remove(from);
                self.names.insert(to.clone(), *inode);
                self.files.entry(*inode).or_default();
            }
        }
    }
}

impl Unit {
    /// The file whose sync makes it durable; a name waits for the sync of the directory.
    pub(super) const fn file(&self) -> Option<Inode> {
        match self {
            Self::Bytes(inode, ..) => Some(*inode),
            Self::Named(..) | Self::Unnamed(_) | Self::Renamed(..) => None,
        }
    }
}

/// Writes bytes into a file, with zeros in front where it was shorter.
pub(super) fn write(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

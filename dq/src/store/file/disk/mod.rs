//! What the journal needs of a file system: one flat directory of files.
//!
//! * [`Disk`], [`DiskFile`]: the traits. Tests implement them in memory, with faults and power cuts.
//! * [`Directory`]: a real directory (Unix).
//!
//! What survives a power cut: the bytes of a file once [`DiskFile::sync`] returned `Ok`, and the names of files (created, renamed
//! or removed) once [`Disk::sync`] did. Before that any part of them may survive.

#[cfg(unix)]
mod directory;
#[cfg(unix)]
mod network;

use std::fmt::Debug;
use std::io;

#[cfg(unix)]
pub use directory::Directory;

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryFile {
    /// Its name, without the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// A directory.
pub trait Disk: Debug + Send + Sync + 'static {
    /// Its path, for messages.
    fn path(&self) -> String;

    /// Lists its files, in any order. Names that are not Unicode are left out.
    fn list(&self) -> io::Result<Vec<DirectoryFile>>;

    /// Makes an empty file and opens it for reading and writing. Fails with [`io::ErrorKind::AlreadyExists`] if there is one.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that exists.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name. A file that has that name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names of all files durable. Fails with [`io::ErrorKind::NotFound`] if the directory was moved.
    fn sync(&self) -> io::Result<()>;

    /// Returns how many bytes may still be written, if the disk tells.
    fn room(&self) -> io::Result<Option<u64>>;

    /// Locks a file, which it makes if there is none, against every other lock of it, in this process or another, until the
    /// returned value drops or the process ends. Then writes `holder` into it.
    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked>;
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// The result of [`Disk::lock`].
#[derive(Debug)]
pub enum Locked {
    /// The lock is taken until this value drops.
    Held(DiskLock),
    /// Somebody else has it: what they wrote into the file.
    By(String),
}

/// A lock of a file. Dropping it gives it up.
pub type DiskLock = Box<dyn Debug + Send + Sync>;

/// An open file. One thread writes at a time.
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all bytes at this offset. After an error any part of them may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads bytes at this offset until the buffer is full or the file ends, and returns how many.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Makes all that was written durable, and the length of the file. Fails with [`io::ErrorKind::NotFound`] if the file was
    /// removed, or its directory moved.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length of the file.
    fn length(&self) -> io::Result<u64>;
}

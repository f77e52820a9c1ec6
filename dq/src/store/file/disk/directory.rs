//! A real directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::io::Errno;

use super::network::network;
use super::{Access, Disk, DiskFile, DiskLock, Entry, Locked};

/// A real directory of a Unix system.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: File,
}

impl Directory {
    /// Opens a directory. If there is none, this makes it, and those above it, and makes their names durable.
    ///
    /// # Errors
    /// If it cannot be made or read, or is no directory.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        make(&path)?;
        // Two paths of one directory, as through a link, must show as one.
        let path = path.canonicalize()?;
        let handle = File::open(&path)?;
        if !handle.metadata()?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(Self { path, handle })
    }

    /// Returns the kind of the network file system that the directory is on, such as `nfs`, if it is on one. Locks and syncs may
    /// promise less there.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn network(&self) -> io::Result<Option<&'static str>> {
        network(&self.handle)
    }
}

/// Makes a directory and its parents, as far as they are missing, and syncs the parent of each.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make(parent)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

impl Disk for Directory {
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // It went while the directory was being read.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                entries.push(Entry { name, bytes: metadata.len() });
            }
        }
        Ok(entries)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))?;
        Ok(Box::new(OpenFile(file)))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(access == Access::Write).open(self.path.join(name))?;
        Ok(Box::new(OpenFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let stat = statvfs(&self.path)?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked> {
        let path = self.path.join(name);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // A holder has a line; more than this is not its text.
                (&file).take(1_024).read_to_string(&mut text)?;
                return Ok(Locked::By(text));
            }
            Err(error) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.write_all(holder.as_bytes())?;
        Ok(Locked::Held(Box::new(FileLock(file))))
    }
}

/// The lock lasts as long as the file is open.
#[derive(Debug)]
#[expect(dead_code, reason = "dropping the file gives the lock up")]
struct FileLock(File);

impl DiskLock for FileLock {}

#[derive(Debug)]
struct OpenFile(File);

impl DiskFile for OpenFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()?;
        // A file without a name goes with the process, however well it is synced.
        if self.0.metadata()?.nlink() == 0 {
            return Err(io::Error::new(ErrorKind::NotFound, "the file was removed while it was in use"));
        }
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

//! A real directory. All files are opened through its handle, so a directory that takes its place is never written.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::fs::{flock, fstatvfs, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::network::network;
use super::{Access, DirectoryFile, Disk, DiskFile, Locked};

/// Only the user of the program may read what dq makes.
const OF_A_DIRECTORY: u32 = 0o700;
const OF_A_FILE: u32 = 0o600;

/// The right of every user to write.
const ALL_WRITE: u32 = 0o002;
/// Users may remove their own files only, as in `/tmp`.
const STICKY: u32 = 0o1000;
/// The right of the group to write.
const GROUP_WRITES: u32 = 0o020;

/// A real directory of a Unix system.
#[derive(Debug)]
pub struct Directory(Arc<DirectoryPlace>);

/// A directory, and where it was when it was opened.
#[derive(Debug)]
struct DirectoryPlace {
    path: PathBuf,
    handle: File,
    device: u64,
    inode: u64,
}

impl Directory {
    /// Opens a directory. If there is none, this makes it, and those above it, and makes their names durable.
    ///
    /// # Errors
    /// If it cannot be made or read, is no directory, or may be written by every user of the machine.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        make(&path)?;
        // Two paths of one directory, as through a link, must show as one.
        let path = path.canonicalize()?;
        let handle = File::open(&path)?;
        let metadata = handle.metadata()?;
        if !metadata.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        if metadata.mode() & ALL_WRITE != 0 {
            return Err(open_to_all(&path, &metadata));
        }
        Ok(Self(Arc::new(DirectoryPlace { path, handle, device: metadata.dev(), inode: metadata.ino() })))
    }

    /// Returns the kind of the network file system that the directory is on, such as `nfs`, if it is on one. Locks and syncs may
    /// promise less there.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn network(&self) -> io::Result<Option<&'static str>> {
        network(&self.0.handle)
    }

    /// Returns which other users may change the files, if any may: a sentence for each.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn exposures(&self) -> io::Result<Vec<String>> {
        let metadata = self.0.handle.metadata()?;
        let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
        let mut exposures = Vec::new();
        if owner != user {
            exposures.push(format!("it belongs to user {owner}, and the program runs as user {user}"));
        }
        if metadata.mode() & GROUP_WRITES != 0 {
            exposures.push(format!("every member of group {} may write into it", metadata.gid()));
        }
        Ok(exposures)
    }

    /// Opens a regular file of the directory, and nothing that a link or another name leads to.
    fn regular(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Without `NONBLOCK` the opening of a pipe waits for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let no_regular_file = || io::Error::new(ErrorKind::InvalidInput, "it is not a regular file: remove it");
        let file = match openat(&self.0.handle, name, flags, Mode::from_raw_mode(OF_A_FILE as _)) {
            Ok(file) => File::from(file),
            // A link; a socket, or a pipe that nobody reads.
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(no_regular_file()),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.is_file() { Ok(file) } else { Err(no_regular_file()) }
    }
}

/// The refusal of a directory that every user may write to. Only the mode of a directory that has the files of a store is advised to be
/// changed: others, such as `/tmp`, need it.
fn open_to_all(path: &Path, metadata: &fs::Metadata) -> io::Error {
    let (mode, shown) = (metadata.mode() & 0o7777, path.display());
    let advice = match path.join("LOCK").is_file() && mode & STICKY == 0 {
        true => format!("run `chmod o-w {shown}`"),
        false => format!("name a directory of its own for the store, such as `{}`", path.join("dq").display()),
    };
    let text = format!("every user of this machine may write into it (mode {mode:o}): {advice}");
    io::Error::new(ErrorKind::PermissionDenied, text)
}

/// What the text of a lock file begins with.
const OF_A_LOCK: &[u8] = b"pid ";

/// Refuses what dq did not write, perhaps a file of another program that has this name too: nothing of it is overwritten. A file that is
/// empty, or has zeros after a power cut, is dq's own unless it has another name.
fn must_be_a_lock(file: &File) -> io::Result<()> {
    let mut start = Vec::new();
    file.take(1_024).read_to_end(&mut start)?;
    let is_blank = start.iter().all(|byte| *byte == 0);
    if start.starts_with(OF_A_LOCK) || (is_blank && file.metadata()?.nlink() == 1) {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is not a lock file of dq: move it away"))
}

/// Makes a directory and its parents, as far as they are missing, and syncs the parent of each.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make(parent)?;
    }
    match DirBuilder::new().mode(OF_A_DIRECTORY).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

impl Disk for Directory {
    fn path(&self) -> String {
        self.0.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<DirectoryFile>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.0.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let stat = match statat(&self.0.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // It went while the directory was being read.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            // What is not a regular file is refused when it is opened, if it has the name of one.
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                entries.push(DirectoryFile { name: name.to_owned(), bytes: u64::try_from(stat.st_size).unwrap_or(0) });
            }
        }
        Ok(entries)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        self.open_with(name, if access == Access::Write { OFlags::RDWR } else { OFlags::RDONLY })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.0.handle, from, &self.0.handle, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0.handle, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.handle.sync_all()?;
        self.0.is_there()
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let stat = fstatvfs(&self.0.handle)?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked> {
        let file = self.regular(name, OFlags::RDWR | OFlags::CREATE)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // A holder has a few lines; more than this is not its text.
                (&file).take(1_024).read_to_string(&mut text)?;
                return Ok(Locked::By(text));
            }
            Err(error) => return Err(error.into()),
        }
        must_be_a_lock(&file)?;
        file.write_all_at(holder.as_bytes(), 0)?;
        // What a longer text before it has left.
        file.set_len(holder.len() as u64)?;
        // The lock lasts as long as the file is open.
        Ok(Locked::Held(Box::new(file)))
    }
}

impl Directory {
    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenFile { file: self.regular(name, flags)?, place: Arc::clone(&self.0) }))
    }
}

impl DirectoryPlace {
    /// Refuses once the directory has another path, or another one has its path: the next start would not find its files.
    fn is_there(&self) -> io::Result<()> {
        let is_moved = match fs::metadata(&self.path) {
            Ok(now) => (now.dev(), now.ino()) != (self.device, self.inode),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => true,
            // A right that somebody took from a directory above says nothing about this one.
            Err(_) => false,
        };
        if !is_moved {
            return Ok(());
        }
        let text =
            "the directory was moved, removed or replaced while it was in use: move it back, its files are whole";
        Err(io::Error::new(ErrorKind::NotFound, text))
    }
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    place: Arc<DirectoryPlace>,
}

impl DiskFile for OpenFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // A file without a name goes with the process, however well it is synced.
        if self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::new(ErrorKind::NotFound, "the file was removed while it was in use"));
        }
        self.place.is_there()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
}

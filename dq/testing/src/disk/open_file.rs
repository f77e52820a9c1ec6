//! An open file of a simulated disk.

use std::io;
use std::sync::{Arc, Mutex};

use dq::store::file::disk::DiskFile;

use super::machine::{Machine, lock};
use super::units::Inode;

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) machine: Arc<Mutex<Machine>>,
    pub(super) inode: Inode,
    pub(super) is_writable: bool,
}

impl OpenFile {
    fn write<T>(&self, with: impl FnOnce(&mut Machine) -> io::Result<T>) -> io::Result<T> {
        if !self.is_writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        with(&mut lock(&self.machine))
    }
}

impl DiskFile for OpenFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(|machine| machine.write(self.inode, offset, bytes))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let machine = lock(&self.machine);
        let file = &machine.files[&self.inode];
        let rest = file.get(offset as usize..).unwrap_or_default();
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn sync(&self) -> io::Result<()> {
        self.write(|machine| machine.sync(self.inode))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(lock(&self.machine).files[&self.inode].len() as u64)
    }
}

/// A lock that is held.
#[derive(Debug)]
pub(super) struct HeldLock {
    pub(super) machine: Arc<Mutex<Machine>>,
    pub(super) name: String,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        lock(&self.machine).locks.remove(&self.name);
    }
}

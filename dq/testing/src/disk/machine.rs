//! The files as programs see them, and as the disk has them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::faults::{Faults, Operation, Verdict, off};
use super::units::{Durable, Inode, Unit, write};

/// A disk, and the memory in front of it.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) names: BTreeMap<String, Inode>,
    pub(super) files: BTreeMap<Inode, Vec<u8>>,
    pub(super) durable: Durable,
    /// What was not synced, in the order of the writes.
    pub(super) units: Vec<Unit>,
    pub(super) locks: BTreeSet<String>,
    pub(super) faults: Faults,
    pub(super) written: u64,
    /// The bytes that are written at once, or not at all.
    pub(super) block: usize,
    next: Inode,
}

/// A test that panicked below the lock has failed already, and its disk may still be looked at.
pub(super) fn lock(machine: &Mutex<Machine>) -> MutexGuard<'_, Machine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    /// One whose disk and memory agree.
    pub(super) fn of(durable: Durable, block: usize) -> Self {
        Self {
            names: durable.names.clone(),
            files: durable.files.clone(),
            next: durable.files.last_key_value().map_or(0, |(last, _)| last + 1),
            durable,
            units: Vec::new(),
            locks: BTreeSet::new(),
            faults: Faults::default(),
            written: 0,
            block,
        }
    }

    /// One with the same files, and nothing else of it.
    pub(super) fn copy(&self) -> Self {
        Self {
            names: self.names.clone(),
            files: self.files.clone(),
            durable: self.durable.clone(),
            units: self.units.clone(),
            next: self.next,
            ..Self::of(Durable::default(), self.block)
        }
    }

    pub(super) fn find(&self, name: &str) -> io::Result<Inode> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<Inode> {
        self.faults.next(Operation::Create).or_nothing()?;
        if self.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let inode = self.next;
        self.next += 1;
        self.names.insert(name.to_owned(), inode);
        self.files.insert(inode, Vec::new());
        self.units.push(Unit::Named(name.to_owned(), inode));
        Ok(inode)
    }

    /// Puts a file there that is durable at once, in place of one of this name, and counts no operation.
    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) {
        let inode = self.names.get(name).copied().unwrap_or(self.next);
        self.next = self.next.max(inode + 1);
        for (names, files) in [(&mut self.names, &mut self.files), (&mut self.durable.names, &mut self.durable.files)] {
            names.insert(name.to_owned(), inode);
            files.insert(inode, bytes.to_vec());
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.faults.next(Operation::Rename).or_nothing()?;
        let inode = self.find(from)?;
        self.names.remove(from);
        self.names.insert(to.to_owned(), inode);
        self.units.push(Unit::Renamed(from.to_owned(), to.to_owned(), inode));
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.faults.next(Operation::Remove).or_nothing()?;
        self.names.remove(name);
        self.units.push(Unit::Unnamed(name.to_owned()));
        Ok(())
    }

    /// The bytes of all files that have a name.
    fn used(&self) -> u64 {
        self.names.values().map(|inode| self.files[inode].len() as u64).sum()
    }

    /// How many bytes may still be written.
    pub(super) fn room(&self) -> Option<u64> {
        self.faults.room.map(|room| room.saturating_sub(self.used()))
    }

    pub(super) fn write(&mut self, inode: Inode, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (some, result) = match self.faults.next(Operation::Write) {
            Verdict::Done => (bytes.len(), Ok(())),
            Verdict::Fails(kind) => (bytes.len() / 2, Err(kind.into())),
            Verdict::Off => return Err(off()),
        };
        let room = self.room().unwrap_or(u64::MAX);
        let fits = (self.files[&inode].len() as u64).saturating_sub(offset).saturating_add(room);
        let (some, result) =
            if (some as u64) > fits { (fits as usize, Err(ErrorKind::StorageFull.into())) } else { (some, result) };
        self.written += some as u64;
        let file = self.files.get_mut(&inode).expect("an open file is kept");
        write(file, offset, &bytes[..some]);
        let (start, end) = (offset as usize / self.block * self.block, offset as usize + some);
        for at in (start..end).step_by(self.block).filter(|_| some > 0) {
            let block = file[at..file.len().min(at + self.block)].to_vec();
            self.units.push(Unit::Bytes(inode, at as u64, block));
        }
        result
    }

    pub(super) fn sync(&mut self, inode: Inode) -> io::Result<()> {
        self.flush(Operation::Sync, Some(inode))?;
        if self.names.values().any(|named| *named == inode) {
            return Ok(());
        }
        Err(io::Error::new(ErrorKind::NotFound, "the file was removed while it was in use"))
    }

    pub(super) fn sync_directory(&mut self) -> io::Result<()> {
        self.flush(Operation::SyncDirectory, None)
    }

    /// Lets all units of a file, or all names, reach the disk. If it fails, every second of them does. The other bytes of a file
    /// never will, because the system takes them for clean; names stay for the next sync of the directory.
    fn flush(&mut self, operation: Operation, file: Option<Inode>) -> io::Result<()> {
        let verdict = self.faults.next(operation);
        if verdict == Verdict::Off {
            return Err(off());
        }
        let mut number = 0;
        let durable = &mut self.durable;
        self.units.retain(|unit| {
            if unit.file() != file {
                return true;
            }
            number += 1;
            let is_applied = verdict == Verdict::Done || number % 2 == 0;
            if is_applied {
                durable.apply(unit, false);
            }
            !is_applied && file.is_none()
        });
        verdict.or_nothing()
    }
}

//! The disk itself.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use dq::store::file::disk::{Access, DirectoryFile, Disk, DiskFile, Locked};

use super::BLOCK;
use super::faults::Operation;
use super::machine::{Machine, lock};
use super::open_file::{HeldLock, OpenFile};
use super::units::{Durable, Fate, Unit};

/// A directory in memory. Clones are the same directory.
#[derive(Debug, Clone)]
pub struct SimulatedDisk(Arc<Mutex<Machine>>);

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::with_block(BLOCK)
    }
}

impl SimulatedDisk {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty directory on a disk whose blocks have this many bytes.
    pub fn with_block(bytes: usize) -> Self {
        Self::of(Durable::default(), bytes)
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        lock(&self.0)
    }

    fn of(durable: Durable, block: usize) -> Self {
        Self(Arc::new(Mutex::new(Machine::of(durable, block))))
    }

    /// How many units were not synced.
    pub fn units(&self) -> usize {
        self.machine().units.len()
    }

    /// The disk after a power cut, with what was synced, and of each other unit, by its number, what `fate` says. This disk stays
    /// as it is.
    pub fn cut(&self, mut fate: impl FnMut(usize) -> Fate) -> Self {
        let machine = self.machine();
        let mut durable = machine.durable.clone();
        for (number, unit) in machine.units.iter().enumerate() {
            match fate(number) {
                Fate::Kept => durable.apply(unit, false),
                Fate::Garbled if matches!(unit, Unit::Bytes(..)) => durable.apply(unit, true),
                Fate::Garbled | Fate::Lost => {}
            }
        }
        durable.files.retain(|inode, _| durable.names.values().any(|named| named == inode));
        Self::of(durable, machine.block)
    }

    /// The disk as a new process finds it after this one was killed: all that was written, synced or not. No faults, no locks. This
    /// disk stays as it is.
    pub fn copy(&self) -> Self {
        let copy = self.machine().copy();
        Self(Arc::new(Mutex::new(copy)))
    }

    /// Lets the `number`-th operation of a kind fail from now on, counted from 0. A write that fails writes half of its bytes. Of
    /// what a failed sync should have made durable, every second unit is; the other bytes of a file stay readable and never become
    /// durable, and the other names wait for the next sync of the directory.
    pub fn fail(&self, operation: Operation, number: u64, kind: ErrorKind) {
        let faults = &mut self.machine().faults;
        faults.restart();
        faults.failing = Some((operation, number, kind));
    }

    /// Switches the machine off before the `number`-th changing operation from now on, counted from 0: it and all later ones fail
    /// and do nothing.
    pub fn off_at(&self, number: u64) {
        let faults = &mut self.machine().faults;
        faults.restart();
        faults.off_at = Some(number);
    }

    /// Sets how many bytes all files may have together. [`None`]: any.
    pub fn set_room(&self, room: Option<u64>) {
        self.machine().faults.room = room;
    }

    /// How many operations of a kind there were, since the start or the last [`fail`](Self::fail) or [`off_at`](Self::off_at).
    pub fn count(&self, operation: Operation) -> u64 {
        self.machine().faults.counts.get(&operation).copied().unwrap_or(0)
    }

    /// The changing operations in their order, counted like [`count`](Self::count).
    pub fn operations(&self) -> Vec<Operation> {
        self.machine().faults.log.clone()
    }

    /// How many bytes were written.
    pub fn written(&self) -> u64 {
        self.machine().written
    }

    /// The bytes of a file.
    ///
    /// # Panics
    /// If there is none.
    pub fn file(&self, name: &str) -> Vec<u8> {
        let machine = self.machine();
        machine.files[&machine.find(name).expect("the file exists")].clone()
    }

    /// Puts a durable file there, in place of one of this name.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        self.machine().put(name, bytes);
    }
}

impl Disk for SimulatedDisk {
    fn path(&self) -> String {
        "simulated".to_owned()
    }

    fn list(&self) -> io::Result<Vec<DirectoryFile>> {
        let machine = self.machine();
        let entry = |(name, inode): (&String, &u64)| DirectoryFile {
            name: name.clone(),
            bytes: machine.files[inode].len() as u64,
        };
        Ok(machine.names.iter().map(entry).collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.machine().create(name)?;
        Ok(Box::new(OpenFile { machine: Arc::clone(&self.0), inode, is_writable: true }))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.machine().find(name)?;
        Ok(Box::new(OpenFile { machine: Arc::clone(&self.0), inode, is_writable: access == Access::Write }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.machine().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.machine().remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.machine().sync_directory()
    }

    fn room(&self) -> io::Result<Option<u64>> {
        Ok(self.machine().room())
    }

    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked> {
        let mut machine = self.machine();
        if !machine.locks.insert(name.to_owned()) {
            let text = machine.find(name).map(|inode| machine.files[&inode].clone()).unwrap_or_default();
            return Ok(Locked::By(String::from_utf8_lossy(&text).into_owned()));
        }
        // What the file says is for people, so it needs neither a unit nor a fault.
        machine.put(name, holder.as_bytes());
        Ok(Locked::Held(Box::new(HeldLock { machine: Arc::clone(&self.0), name: name.to_owned() })))
    }
}

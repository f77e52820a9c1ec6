//! A directory that notes the groups which a `file:` store writes and syncs, and the loop that writes the same again.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use dq::store::file::disk::{Access, Directory, DirectoryFile, Disk, DiskFile, Locked};
use dq_bench::{Cost, Meter};

/// The bytes of each group that was synced. Zeros that are written ahead do not count.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    synced: Mutex<Vec<u64>>,
    unsynced: AtomicU64,
    snapshots: AtomicU64,
}

impl Groups {
    /// How many snapshots were finished.
    pub(crate) fn snapshots(&self) -> u64 {
        self.snapshots.load(Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.synced.lock().unwrap().clear();
    }

    pub(crate) fn taken(&self) -> Vec<u64> {
        std::mem::take(&mut self.synced.lock().unwrap())
    }
}

#[derive(Debug)]
pub(crate) struct Recording {
    directory: Directory,
    groups: Arc<Groups>,
}

impl Recording {
    pub(crate) fn open(path: &Path) -> (Arc<dyn Disk>, Arc<Groups>) {
        let groups = Arc::<Groups>::default();
        let directory = Directory::open(path).unwrap();
        (Arc::new(Self { directory, groups: Arc::clone(&groups) }), groups)
    }

    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(RecordedFile { file, groups: Arc::clone(&self.groups) })
    }
}

impl Disk for Recording {
    fn path(&self) -> String {
        self.directory.path()
    }
    fn list(&self) -> io::Result<Vec<DirectoryFile>> {
        self.directory.list()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(self.directory.create(name)?))
    }
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.file(Disk::open(&self.directory, name, access)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if to.starts_with("snapshot") {
            self.groups.snapshots.fetch_add(1, Relaxed);
        }
        self.directory.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.directory.sync()
    }
    fn room(&self) -> io::Result<Option<u64>> {
        self.directory.room()
    }
    fn lock(&self, name: &str, holder: &str) -> io::Result<Locked> {
        self.directory.lock(name, holder)
    }
}

#[derive(Debug)]
struct RecordedFile {
    file: Box<dyn DiskFile>,
    groups: Arc<Groups>,
}

impl DiskFile for RecordedFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.iter().any(|byte| *byte != 0) {
            self.groups.unsynced.fetch_add(bytes.len() as u64, Relaxed);
        }
        self.file.write_at(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }
    fn sync(&self) -> io::Result<()> {
        let bytes = self.groups.unsynced.swap(0, Relaxed);
        if bytes > 0 {
            self.groups.synced.lock().unwrap().push(bytes);
        }
        self.file.sync()
    }
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
}

/// Writes groups of these sizes one after the other, each synced, into a file of zeros.
pub(crate) fn bare(path: &Path, groups: &[u64], jobs: usize, done: impl FnOnce(Cost)) {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
    let total: u64 = groups.iter().sum();
    let zeros = vec![0; 1 << 20];
    for offset in (0..total).step_by(zeros.len()) {
        file.write_all_at(&zeros, offset).unwrap();
    }
    file.sync_all().unwrap();
    let bytes = vec![b'x'; groups.iter().copied().max().unwrap_or(0) as usize];
    let (meter, mut offset) = (Meter::start(), 0);
    for group in groups {
        file.write_all_at(&bytes[..*group as usize], offset).unwrap();
        file.sync_data().unwrap();
        offset += group;
    }
    done(meter.end(jobs));
}

//! Stores in folders that go with the test.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::file::FileStore;
use dq::testing::ManualClock;
use dq_testing::conformance::StoreFixture;

/// A folder of its own below the system's folder for temporary files. Dropping it removes it.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A name that no other folder has; the folder itself is not made.
    pub fn unmade() -> Self {
        Self::below(std::env::temp_dir())
    }

    /// The same on a file system in memory, where the machine has one: for a program whose output depends on a disk that answers
    /// within `call_timeout`.
    pub fn in_memory() -> Self {
        let memory = PathBuf::from("/dev/shm");
        Self::below(if memory.is_dir() { memory } else { std::env::temp_dir() })
    }

    fn below(parent: PathBuf) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(parent.join(format!("dq-file-{}-{number}", std::process::id())))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The URL of a store in it.
    pub fn url(&self) -> String {
        format!("file:{}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A `file:` store with a manual clock.
#[derive(Debug)]
pub struct FileFixture {
    clock: Arc<ManualClock>,
    store: Arc<FileStore>,
    // Dropped last: the store closes its files first.
    _folder: Folder,
}

impl FileFixture {
    /// A store in a new folder.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub async fn empty() -> Self {
        let (clock, folder) = (Arc::new(ManualClock::at(0)), Folder::unmade());
        let store = FileStore::new(folder.path()).with(|options| options.clock = clock.clone());
        store.open().await.expect("a new folder opens");
        Self { store: Arc::new(store), clock, _folder: folder }
    }
}

impl StoreFixture for FileFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.clock.set(micros);
        Box::pin(async {})
    }
}

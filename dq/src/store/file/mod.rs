//! A store in a directory of this machine: `file:PATH`. One process uses it at a time.
//!
//! It is the [memory store](super::memory) over a journal: the same transitions, the same indexes. Each step hands over what it has
//! changed, and the answer of an add, a command or an outcome comes once that is synced to the disk. A claim is not waited for: after
//! a crash the job is where it was. `docs/internals/journal.md` describes the files.
//!
//! * [`disk`] is what the store needs of a file system, [`journal`] the engine above it, which knows nothing about jobs.
//! * `sink` takes the changes of the steps and confirms them (`progress`, `fences`); `snapshots` replaces old parts of the journal.
//! * `loader` turns what the journal has into rows, of all jobs or of one part (`parts`); `reading` finds directories.
//! * `opening` reads a directory and starts the thread that writes (`bell` wakes it), `opened` is an open one, `shared` finds it again in the same process.
//! * [`compact()`] is for a directory that no process uses; [`check()`], [`backup()`], [`Parts`] and [`FileView`] only read, also beside a
//!   process that uses it. [`NewDirectory`] takes imports and keeps only their places in memory (`known`).

mod backup;
mod bell;
mod check;
pub mod disk;
mod fences;
mod filling;
pub mod journal;
mod known;
mod loader;
mod opened;
mod opening;
mod options;
mod parts;
mod progress;
mod reading;
mod salvage;
#[cfg(unix)]
mod shared;
mod sink;
mod snapshots;
mod view;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use super::memory::MemoryStore;
use super::{
    Danger, Durability, FindingCode, Interest, Link, LinkOptions, MemoryUse, Producer, Query, QueryReply, Signals,
    Store, StoreError,
};
use crate::environment::{StoreClock, WallClock};
use crate::job::{NodeId, ProducerId, TopicKey};

pub use backup::{backup, backup_on};
pub use check::{Checked, TopicChecked, check, check_on, compact};
pub use filling::NewDirectory;
pub use options::{Commits, FileOptions};
pub use parts::Parts;
pub use reading::CheckError;
pub use salvage::{Saved, salvage, salvage_on};
pub use view::FileView;

use disk::Disk;
use opened::{Connection, Opened};

/// A store in a directory.
///
/// The directory is opened, and made if it is missing, when a factory or provider starts. All stores of one process with the same
/// directory are one store; the first one's options count.
pub struct FileStore {
    at: At,
    options: FileOptions,
    opened: OnceCell<Arc<Opened>>,
}

/// Where the files are.
#[derive(Clone)]
enum At {
    Path(PathBuf),
    Disk(Arc<dyn Disk>),
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore").field("url", &self.url()).field("options", &self.options).finish_non_exhaustive()
    }
}

impl FileStore {
    /// The store in this directory. Nothing is opened yet.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self::at(At::Path(path.as_ref().to_owned()), Arc::new(WallClock))
    }

    /// The store on a disk that the program made, for tests.
    pub fn on(disk: Arc<dyn Disk>, clock: Arc<dyn StoreClock>) -> Self {
        Self::at(At::Disk(disk), clock)
    }

    fn at(at: At, clock: Arc<dyn StoreClock>) -> Self {
        Self { at, options: FileOptions::new(clock), opened: OnceCell::new() }
    }

    /// The same store with other options.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut FileOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// The same store, which answers once this durability is reached. Default: [`Durability::Local`], when it is synced.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        self.with(|options| options.durability = durability)
    }

    /// Opens the directory, unless it is open. It reads everything that waits, on a thread of its own.
    ///
    /// # Errors
    /// [`StoreError::Held`]: another process uses the directory. [`StoreError::Halted`] with the reason and what to do: the directory is
    /// damaged, or of another version; or the disk refuses.
    pub async fn open(&self) -> Result<(), StoreError> {
        self.opened.get_or_try_init(|| open(self.at.clone(), self.options.clone())).await.map(drop)
    }

    /// Writes and syncs what was changed, then takes a snapshot if one is due. For [`Commits::ByHand`].
    ///
    /// # Errors
    /// [`StoreError`] if the store is not open, or the disk refuses.
    pub fn commit(&self) -> Result<(), StoreError> {
        self.opened("commit")?.commit()
    }

    /// The rows behind the files, for checkers. Its steps are journaled.
    ///
    /// # Errors
    /// [`StoreError`] if the store is not open.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn rows(&self) -> Result<MemoryStore, StoreError> {
        self.memory("rows").cloned()
    }

    fn opened(&self, operation: &'static str) -> Result<&Arc<Opened>, StoreError> {
        let reason = || "it was not opened yet".to_owned();
        self.opened.get().ok_or_else(|| StoreError::Halted { operation, reason: reason() })
    }

    fn memory(&self, operation: &'static str) -> Result<&MemoryStore, StoreError> {
        self.opened(operation).map(|opened| &opened.memory)
    }

    fn connect<C: ?Sized>(&self, connect: impl FnOnce(&MemoryStore) -> Arc<C>) -> Arc<Connection<C>> {
        let opened = self.opened.get();
        Arc::new(Connection(opened.map(|opened| (connect(&opened.memory), Arc::clone(opened)))))
    }

    fn dangers(&self) -> Result<Vec<Danger>, StoreError> {
        let of_disk = match self.opened("dangers")?.admit("dangers") {
            Err(StoreError::Full { reason, .. }) => Some(Danger { code: FindingCode::DiskFull, text: reason }),
            Err(StoreError::Halted { reason, .. }) => Some(Danger { code: FindingCode::StoreHalted, text: reason }),
            admitted => admitted.map(|()| None)?,
        };
        let of_memory = self.memory_use().and_then(|used| used.danger("the jobs take", "`max_memory`"));
        Ok(of_disk.into_iter().chain(of_memory).collect())
    }
}

/// Opens a directory on a thread of its own, because it blocks; where the commits are by hand everything is on one thread.
async fn open(at: At, options: FileOptions) -> Result<Arc<Opened>, StoreError> {
    if options.commits != Commits::OnOwnThread {
        return open_now(&at, &options);
    }
    opening::on_own_thread("dq-open", move || open_now(&at, &options)).await
}

fn open_now(at: &At, options: &FileOptions) -> Result<Arc<Opened>, StoreError> {
    match at {
        #[cfg(unix)]
        At::Path(path) => shared::open(path, options),
        #[cfg(not(unix))]
        At::Path(_) => Err(opening::halted(&"`file:` needs a Unix system; use `redis:` here")),
        At::Disk(disk) => opening::open(disk, options).map(Arc::new),
    }
}

impl Store for FileStore {
    fn url(&self) -> String {
        match &self.at {
            At::Path(path) => format!("file:{}", path.display()),
            At::Disk(disk) => format!("file:{}", disk.path()),
        }
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        Box::pin(async move {
            match query {
                Query::Prepare {} => self.open().await.map(QueryReply::Prepare),
                Query::Contact {} => {
                    self.open().await?;
                    self.opened("contact")?.admit("contact")?;
                    self.memory("contact")?.ask(query).await
                }
                Query::Dangers {} => self.dangers().map(QueryReply::Dangers),
                query => self.memory(query.name())?.ask(query).await,
            }
        })
    }

    fn link_with(&self, topic: &TopicKey, node: &NodeId, options: LinkOptions) -> Arc<dyn Link> {
        self.connect(|memory| memory.link_with(topic, node, options))
    }

    fn producer(&self, topic: &TopicKey, producer: &ProducerId) -> Arc<dyn Producer> {
        self.connect(|memory| memory.producer(topic, producer))
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        self.opened.get()?.memory.memory_use()
    }

    fn signals<'a>(&'a self, topic: &'a TopicKey, interest: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        Box::pin(async move { self.memory("signals")?.signals(topic, interest).await })
    }
}

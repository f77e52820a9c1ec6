//! Looks at a directory that another process uses: read-only, from its files.

use std::fmt;
use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::disk::Disk;
use super::journal::{Follower, Journal};
use super::loader::Loader;
use super::opening::{halted, on_own_thread};
use super::reading::{CheckError, existing, repeated};
use crate::environment::{WallClock, free_memory};
use crate::job::{NodeId, ProducerId, TopicKey};
use crate::store::memory::{MemoryStore, ReplayPart};
use crate::store::{
    Answer, Batch, BatchReply, Interest, Link, LinkOptions, Pending, Producer, Query, QueryReply, Request, Signals,
    Store, StoreError,
};

/// A view of a directory that another process uses. Each query first reads what was written since the last one, so its answer is as new as
/// the files are; changes fail with [`StoreError::Held`]. The view has what the journal has: no leases, roles, statistics and signals.
///
/// It takes as much memory as the jobs, and refuses to take more than half of what the machine has left. Cheap to clone; the clones are
/// one view.
#[derive(Clone)]
pub struct FileView {
    disk: Arc<dyn Disk>,
    refusing: Arc<OnlyLooks>,
    most_memory: u64,
    seen: Arc<Mutex<Option<Seen>>>,
}

/// What was read so far.
#[derive(Debug)]
struct Seen {
    loader: Loader,
    follower: Follower,
}

impl fmt::Debug for FileView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileView")
            .field("url", &self.url())
            .field("holder", &self.refusing.holder)
            .finish_non_exhaustive()
    }
}

impl FileView {
    /// A view of this directory, and who uses it. Nothing is read yet.
    ///
    /// # Errors
    /// [`CheckError`]: there is no such directory, or it cannot be read.
    pub fn of(path: impl AsRef<Path>, holder: &str) -> Result<Self, CheckError> {
        Ok(Self::on(existing(path.as_ref())?, holder))
    }

    /// As [`of`](Self::of), on a disk that the program made.
    pub fn on(disk: Arc<dyn Disk>, holder: &str) -> Self {
        let most_memory = free_memory().map_or(u64::MAX, |free| free / 2);
        let refusing = Arc::new(OnlyLooks { path: disk.path(), holder: holder.to_owned() });
        Self { disk, refusing, most_memory, seen: Arc::default() }
    }

    /// The same view, whose jobs may take so much memory.
    #[must_use]
    pub fn with_memory(self, most_memory: u64) -> Self {
        Self { most_memory, ..self }
    }

    /// The jobs as the files have them now. Blocks.
    fn now(&self) -> Result<MemoryStore, StoreError> {
        // A reading that panicked has left nothing behind, because it is taken out meanwhile.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut known) = seen.take()
            && let Ok(true) = known.follower.read_on(&*self.disk, |_, frame| known.loader.load(&frame))
        {
            return Ok(seen.insert(known).loader.memory.clone());
        }
        let read = repeated(|| self.read()).map_err(|error| match error {
            CheckError::Store(error) => error,
            error => halted(&error),
        })?;
        Ok(seen.insert(read).loader.memory.clone())
    }

    fn read(&self) -> Result<Seen, CheckError> {
        let memory = MemoryStore::new(Arc::new(WallClock));
        let mut loader = Loader::new(&memory, ReplayPart::WHOLE).up_to(self.most_memory);
        let read = Journal::follow(&*self.disk, |_, frame| loader.load(&frame));
        if loader.is_over() {
            let reason = "the jobs take more than half of the memory that this machine has left: look at them in the dashboard of the \
                          program that uses them; `dq export` and `dq check` need little memory";
            return Err(StoreError::Full { operation: "view", reason: reason.to_owned() }.into());
        }
        let follower = read?.ok_or_else(|| CheckError::NoStore { path: self.disk.path() })?;
        Ok(Seen { loader, follower })
    }
}

impl Store for FileView {
    fn url(&self) -> String {
        format!("file:{}", self.disk.path())
    }

    fn ask<'a>(&'a self, query: Query<'a>) -> BoxFuture<'a, Result<QueryReply, StoreError>> {
        match query {
            Query::KeepHistory { .. } | Query::Repair { .. } | Query::Listen { .. } => self.refusing.refuse(),
            query => Box::pin(async move {
                let view = self.clone();
                let memory = on_own_thread("dq-view", move || view.now()).await?;
                memory.ask(query).await.map(without_leases)
            }),
        }
    }

    fn link_with(&self, _: &TopicKey, _: &NodeId, _: LinkOptions) -> Arc<dyn Link> {
        self.refusing.clone()
    }

    fn producer(&self, _: &TopicKey, _: &ProducerId) -> Arc<dyn Producer> {
        self.refusing.clone()
    }

    fn signals<'a>(&'a self, _: &'a TopicKey, _: Interest) -> BoxFuture<'a, Result<Signals, StoreError>> {
        self.refusing.refuse()
    }
}

/// An answer that does not take leases that it does not know for leases that have ended.
fn without_leases(mut reply: QueryReply) -> QueryReply {
    if let QueryReply::Overview(seen) = &mut reply {
        seen.hides_leases = true;
    }
    reply
}

/// A link or producer of a view, which changes nothing.
#[derive(Debug)]
struct OnlyLooks {
    path: String,
    holder: String,
}

impl OnlyLooks {
    fn refuse<T: Send + 'static>(&self) -> Pending<T> {
        let error = StoreError::Held { path: self.path.clone(), holder: self.holder.clone() };
        Box::pin(ready(Err(error)))
    }
}

impl Link for OnlyLooks {
    fn ask(&self, _: Request) -> Pending<Answer> {
        self.refuse()
    }
}

impl Producer for OnlyLooks {
    fn ask(&self, _: Batch) -> Pending<BatchReply> {
        self.refuse()
    }
}

//! The bounds on what a provider holds at a time, over all its topics: unanswered adds and commands, by count and by bytes, and
//! queries.
//!
//! Callers wait in the order in which they came, and a small request does not overtake a large one. The wait needs no timer: what
//! a caller waits for belongs to earlier callers, whose deadlines are earlier and free it. Cancel safe: a caller that goes away
//! leaves its place to the next.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::config::NodeSettings;

/// How many queries of a provider may be unanswered.
pub(super) const MOST_QUERIES: usize = 256;

/// Bytes that requests hold until they are dropped.
pub(super) enum Bytes {
    /// Those of one request.
    Own { _permit: OwnedSemaphorePermit },
    /// Those of all requests of one call.
    Shared { _permit: Arc<OwnedSemaphorePermit> },
}

/// Places for requests of one call.
pub(super) struct Place {
    /// Until the answer; `None` for what a call has beyond all places.
    pub(super) request: Option<OwnedSemaphorePermit>,
    pub(super) bytes: Bytes,
}

/// The places of a provider.
pub(super) struct Places {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    most_requests: u32,
    most_bytes: u32,
    pub(super) queries: Arc<Semaphore>,
}

fn most(limit: usize) -> u32 {
    u32::try_from(limit.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX)
}

impl Places {
    pub(super) fn new(settings: &NodeSettings) -> Self {
        let (most_requests, most_bytes) = (most(settings.unanswered_limit), most(settings.unanswered_bytes));
        Self {
            requests: Arc::new(Semaphore::new(most_requests as usize)),
            bytes: Arc::new(Semaphore::new(most_bytes as usize)),
            most_requests,
            most_bytes,
            queries: Arc::new(Semaphore::new(MOST_QUERIES)),
        }
    }

    /// What a call of this size takes: all there is, if it is larger.
    fn share(&self, bytes: usize) -> u32 {
        most(bytes).min(self.most_bytes)
    }

    /// A place for a request of this size, if nobody has to wait.
    pub(super) fn try_one(&self, bytes: usize) -> Option<Place> {
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let permit = Arc::clone(&self.bytes).try_acquire_many_owned(self.share(bytes)).ok()?;
        Some(Place { request: Some(request), bytes: Bytes::Own { _permit: permit } })
    }

    /// Waits for a place for a request of this size. An error means that the provider was closed.
    pub(super) async fn one(&self, bytes: usize) -> Result<Place, AcquireError> {
        let (request, permit) = self.acquire(1, bytes).await?;
        Ok(Place { request: Some(request), bytes: Bytes::Own { _permit: permit } })
    }

    /// Waits for places for so many requests, which have so many bytes together. Returns a source of one place for each.
    pub(super) async fn many(&self, count: usize, bytes: usize) -> Result<impl FnMut() -> Place + use<>, AcquireError> {
        let (mut requests, permit) = self.acquire(most(count).min(self.most_requests), bytes).await?;
        let permit = Arc::new(permit);
        Ok(move || Place { request: requests.split(1), bytes: Bytes::Shared { _permit: Arc::clone(&permit) } })
    }

    async fn acquire(
        &self,
        count: u32,
        bytes: usize,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), AcquireError> {
        let requests = Arc::clone(&self.requests).acquire_many_owned(count).await?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(self.share(bytes)).await?;
        Ok((requests, bytes))
    }

    /// Gives out no more places for adds and commands. Queries go on.
    pub(super) fn close(&self) {
        self.requests.close();
        self.bytes.close();
    }
}

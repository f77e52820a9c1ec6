//! A job as its handler sees it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use crate::job::{Fence, JobId, TopicName};
use crate::time::Timestamp;

/// What is known of a run besides the payload.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The topic.
    pub topic: TopicName,
    /// The id.
    pub id: JobId,
    /// The fence of this run.
    pub fence: Fence,
    /// When it was due.
    pub due: Timestamp,
    /// Failed runs before this one.
    pub attempt: u32,
    /// Headers it was added with.
    pub headers: Arc<[(String, String)]>,
    /// Fires when this run is not wanted any more.
    pub token: CancellationToken,
}

/// A job: its payload (it derefs to it) and what is known of this run.
///
/// A payload method of the same name as one here is called as `CloseOrder::attempt(&job)`.
pub struct Job<P> {
    payload: P,
    delivery: Delivery,
}

impl<P> Job<P> {
    pub(crate) const fn new(payload: P, delivery: Delivery) -> Self {
        Self { payload, delivery }
    }

    /// The id of the job within its topic.
    pub const fn id(&self) -> &JobId {
        &self.delivery.id
    }

    /// The fence of this run: a number that grows from run to run of a job, also across a failover of the store. Write
    /// it beside what you write, and let a smaller one never replace a larger one.
    pub const fn fence(&self) -> Fence {
        self.delivery.fence
    }

    /// Failed runs before this one; a rejoin keeps it.
    pub const fn attempt(&self) -> u32 {
        self.delivery.attempt
    }

    /// When it was due, on the store's clock.
    pub fn due(&self) -> SystemTime {
        self.delivery.due.into()
    }

    /// The header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.delivery.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Fires when this run is not wanted any more: the job was cancelled, its lease was lost, its timeout passed, or the
    /// grace at shutdown ended. Code that the future's drop cannot stop (a spawned task, a blocking thread) watches it.
    pub const fn token(&self) -> &CancellationToken {
        &self.delivery.token
    }

    /// The payload.
    pub fn into_payload(self) -> P {
        self.payload
    }
}

impl<P> Deref for Job<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.payload
    }
}

/// Id, fence and attempt; never the payload.
impl<P> fmt::Debug for Job<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("topic", &self.delivery.topic.as_str())
            .field("id", &self.delivery.id.as_str())
            .field("fence", &self.delivery.fence.0)
            .field("attempt", &self.delivery.attempt)
            .finish_non_exhaustive()
    }
}

//! What a handler is called with, made by hand: no store, no clock, no registry.

use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use crate::config::NodeSettings;
use crate::environment::{Environment, Seeded, TokioClock};
use crate::job::{AppName, DelayJob, Fence, JobId, TopicName};
use crate::listener::{Channel, Delivery, Job};
use crate::provider::Provider;
use crate::store::memory::MemoryStore;

/// A job as a handler gets it: first attempt, due now, its id from its payload (or `test`), fence 1.
///
/// [`FakeJob`] makes others.
pub fn job<P: DelayJob>(payload: P) -> Job<P> {
    FakeJob::new(payload).build()
}

/// The channel of a run. What the handler decided is in [`Decided::decision`](crate::Decided::decision).
pub const fn channel() -> Channel {
    Channel::new()
}

/// A provider on a memory store of its own: adds are kept there and nobody runs them. Look with `get`, `waiting`, `counts`.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn provider() -> Provider {
    let app = AppName::new("test").expect("the name is good");
    let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::new())));
    Provider::root(app, store, Environment::on_this_runtime(Arc::new(Seeded::new(1))), NodeSettings::default())
}

/// A job of any kind for a handler: `FakeJob::new(payload).attempt(2).build()`.
#[derive(Debug)]
pub struct FakeJob<P> {
    payload: P,
    delivery: Delivery,
}

impl<P: DelayJob> FakeJob<P> {
    /// A first attempt that is due now, with the id of its payload (or `test`) and fence 1.
    ///
    /// # Panics
    /// When the payload's topic or id cannot be one.
    pub fn new(payload: P) -> Self {
        let id = payload.job_id().unwrap_or_else(|| JobId::new("test")).expect("the payload has a good id");
        let delivery = Delivery {
            topic: TopicName::new(P::TOPIC).expect("the payload has a good topic"),
            id,
            fence: Fence(1),
            due: SystemTime::now().into(),
            attempt: 0,
            headers: Arc::from([]),
            token: CancellationToken::new(),
        };
        Self { payload, delivery }
    }

    /// With another id.
    ///
    /// # Panics
    /// When it cannot be one.
    #[must_use]
    pub fn id(mut self, id: &str) -> Self {
        self.delivery.id = JobId::new(id).expect("the id is good");
        self
    }

    /// After this many failed runs.
    #[must_use]
    pub const fn attempt(mut self, attempt: u32) -> Self {
        self.delivery.attempt = attempt;
        self
    }

    /// With this fence.
    #[must_use]
    pub const fn fence(mut self, fence: u64) -> Self {
        self.delivery.fence = Fence(fence);
        self
    }

    /// That was due at this time.
    #[must_use]
    pub fn due(mut self, due: SystemTime) -> Self {
        self.delivery.due = due.into();
        self
    }

    /// With these headers.
    #[must_use]
    pub fn headers(mut self, headers: &[(&str, &str)]) -> Self {
        self.delivery.headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self
    }

    /// With a token that the test cancels.
    #[must_use]
    pub fn token(mut self, token: CancellationToken) -> Self {
        self.delivery.token = token;
        self
    }

    /// The job.
    pub fn build(self) -> Job<P> {
        Job::new(self.payload, self.delivery)
    }
}

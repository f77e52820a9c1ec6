//! The trait that users implement for broadcasts.

use std::future::Future;

use serde::de::DeserializeOwned;

use crate::job::{JobId, TopicName};
use crate::listener::{Dependency, Injector, JobError, Missing};

/// What `#[broadcast_listener]` writes for a struct; not to be written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` implements `BroadcastListener` but is not annotated",
    label = "would never be registered",
    note = "write `#[broadcast_listener(channels = [\"..\"])]` above the struct"
)]
pub trait Declared: Sized {
    /// The name of the struct.
    const NAME: &'static str;
    /// Where it is annotated, as `src/caches.rs:12`.
    const DECLARED_AT: &'static str;
    /// The broadcast channels it listens to.
    const CHANNELS: &'static [&'static str];

    /// What it needs.
    fn dependencies() -> Vec<Dependency>;

    /// Makes one from what was provided.
    ///
    /// # Errors
    /// [`Missing`] for the first value that was not provided.
    fn inject(injector: &Injector) -> Result<Self, Missing>;
}

/// Handles broadcasts. Annotate the struct with `#[broadcast_listener(channels = ["..", ".."])]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is annotated with `#[broadcast_listener]` but does not implement `BroadcastListener`",
    label = "has no handler",
    note = "write `impl BroadcastListener for {Self} {{ type Message = ..; async fn on_message(&self, broadcast: Broadcast<..>) -> Result<(), JobError> {{ Ok(()) }} }}`"
)]
pub trait BroadcastListener: Declared + Send + Sync + 'static {
    /// The payload: anything that can be deserialized, usually the `DelayJob` that is broadcast.
    type Message: DeserializeOwned + Send + 'static;

    /// Called for each broadcast, at most once on each node. Messages of one node's listener come one after the other.
    ///
    /// An error, a panic, a timeout (30 s) or a payload that does not decode is logged and counted;
    /// there is no retry.
    fn on_message(&self, broadcast: Broadcast<Self::Message>) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// A broadcast as its listener gets it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Broadcast<M> {
    /// The broadcast channel: the topic of the job.
    pub channel: TopicName,
    /// The id of the job.
    pub id: JobId,
    /// The payload.
    pub message: M,
}

impl<M> Broadcast<M> {
    /// A broadcast of these parts.
    pub const fn new(channel: TopicName, id: JobId, message: M) -> Self {
        Self { channel, id, message }
    }
}

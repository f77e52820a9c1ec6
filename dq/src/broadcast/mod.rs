//! Broadcasts: every connected node that listens to the channel receives each message, at most once.
//!
//! The channel of a broadcast job is its topic. Write `dq::Broadcast` and `dq::BroadcastListener`: this module is
//! hidden, and the rest of it may change with every version.

use std::fmt;
use std::future::Future;

use serde::de::DeserializeOwned;

use crate::job::{JobId, TopicName};
use crate::listener::{Dependency, Injector, JobError, Missing};

mod erased;

#[doc(hidden)]
pub use erased::ErasedBroadcast;
pub(crate) use erased::erase;

/// Implemented by `#[broadcast_listener]`; do not implement it by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` implements `BroadcastListener` but is not annotated",
    label = "would never be registered",
    note = "write `#[broadcast_listener(channels = [\"..\"])]` above the struct"
)]
pub trait Declared: Sized {
    /// The name of the struct.
    const NAME: &'static str;
    /// The file and line of the attribute, for example `src/caches.rs:12`.
    const DECLARED_AT: &'static str;
    /// The broadcast channels it listens to.
    const CHANNELS: &'static [&'static str];

    /// The values it needs.
    fn dependencies() -> Vec<Dependency>;

    /// Makes a listener from the values that the program provided.
    ///
    /// # Errors
    /// [`Missing`] for the first value that was not provided.
    fn inject(injector: &Injector) -> Result<Self, Missing>;
}

/// Handles broadcasts. Annotate the struct with [`#[broadcast_listener]`](macro@crate::broadcast_listener), which names
/// its channels, and implement this trait for it.
///
/// ```
/// use dq::prelude::*;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Serialize, Deserialize, DelayJob)]
/// #[job(topic = "cache-expired", deliver = "broadcast")]
/// struct CacheExpired {
///     key: String,
/// }
///
/// #[broadcast_listener(channels = ["cache-expired"])]
/// struct LocalCache;
///
/// impl BroadcastListener for LocalCache {
///     type Message = CacheExpired;
///
///     async fn on_message(&self, broadcast: Broadcast<CacheExpired>) -> Result<(), JobError> {
///         println!("forget {}", broadcast.message.key);
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is annotated with `#[broadcast_listener]` but does not implement `BroadcastListener`",
    label = "has no handler",
    note = "write `impl BroadcastListener for {Self} {{ type Message = ..; async fn on_message(&self, broadcast: Broadcast<..>) -> Result<(), JobError> {{ Ok(()) }} }}`"
)]
pub trait BroadcastListener: Declared + Send + Sync + 'static {
    /// The payload: any type that serde can deserialize, usually the [`DelayJob`](trait@crate::DelayJob) that is
    /// broadcast.
    type Message: DeserializeOwned + Send + 'static;

    /// Handles one broadcast. Each node calls it at most once for each message, and for one message at a time.
    ///
    /// dq logs and counts an error, a panic, a timeout (30 s) and a payload that does not decode. It never retries.
    fn on_message(&self, broadcast: Broadcast<Self::Message>) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// A broadcast, as its listener receives it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Broadcast<M> {
    /// The broadcast channel: the topic of the job.
    pub channel: TopicName,
    /// The id of the job.
    pub id: JobId,
    /// The payload.
    pub message: M,
}

/// Shows the channel and the id, never the payload.
impl<M> fmt::Debug for Broadcast<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("channel", &self.channel).field("id", &self.id).finish_non_exhaustive()
    }
}

impl<M> Broadcast<M> {
    /// Makes a broadcast, for a test of a listener.
    pub const fn new(channel: TopicName, id: JobId, message: M) -> Self {
        Self { channel, id, message }
    }
}

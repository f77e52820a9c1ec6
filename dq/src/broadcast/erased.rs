//! A broadcast listener without its payload type.
#![cfg_attr(not(feature = "testing"), allow(unreachable_pub))] // `testing::seam` shows these to `dq-testing`

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Broadcast, BroadcastListener};
use crate::job::{Cause, JobId, Record, TopicName};
use crate::listener::{Failure, decode};

/// A broadcast listener of any payload type.
pub trait ErasedBroadcast: fmt::Debug + Send + Sync + 'static {
    /// Decodes the payload and calls the handler.
    fn deliver(
        self: Arc<Self>,
        channel: TopicName,
        id: JobId,
        record: Record,
    ) -> BoxFuture<'static, Result<(), Failure>>;
}

struct Erased<L>(L);

/// Hides the payload type of `listener`.
pub(crate) fn erase<L: BroadcastListener>(listener: L) -> Arc<dyn ErasedBroadcast> {
    Arc::new(Erased(listener))
}

impl<L> fmt::Debug for Erased<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<L>())
    }
}

impl<L: BroadcastListener> ErasedBroadcast for Erased<L> {
    fn deliver(
        self: Arc<Self>,
        channel: TopicName,
        id: JobId,
        record: Record,
    ) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(async move {
            let message = decode(&record)?;
            drop(record);
            let delivered = self.0.on_message(Broadcast::new(channel, id, message)).await;
            delivered.map_err(|error| Failure::new(Cause::Error, error.to_string()))
        })
    }
}

//! What `dq-testing` uses of dq beyond its public items. Programs must not use it: it may change with every version.
//!
//! * Build and start a node from its parts: [`Plan`], [`TopicPlan`], [`BroadcastPlan`], [`start`], [`Running`], [`prepare`].
//! * Wrap a listener of any payload type between a node and a user's handlers: [`ErasedListener`], [`ErasedBatches`] with its
//!   [`Outcomes`], [`ErasedBroadcast`].
//! * Read everything that a memory store keeps: [`View`], [`JobView`], [`Row`].

pub use crate::broadcast::erased::ErasedBroadcast;
pub use crate::context::node::{BroadcastPlan, Plan, Running, TopicPlan, start};
pub use crate::listener::batch::Outcomes;
pub use crate::listener::erased::{ErasedBatches, ErasedListener, HandlerCall, Returned};
pub use crate::store::memory::{JobView, Row, View};

use crate::context::{ContextFactory, StartError};
use crate::provider::Provider;

/// Checks the settings of a factory, and returns the plan of its node and its provider without starting the node.
///
/// # Errors
/// As [`ContextFactory::start`].
pub async fn prepare(factory: ContextFactory) -> Result<(Plan, Provider), StartError> {
    factory.prepare().await.map(|prepared| (prepared.plan, prepared.provider))
}

//! What `dq-testing` uses of dq beyond its public items. Programs must not use it: it may change with every version.
//!
//! * Build and start a node from its parts: [`Plan`], [`TopicPlan`], [`BroadcastPlan`], [`start`], [`Running`], [`prepare`].
//! * Wrap a listener of any payload type between a node and a user's handlers: [`ErasedListener`], [`ErasedBatches`] with its
//!   [`Outcomes`], [`ErasedBroadcast`].
//! * Read everything that a memory store keeps: [`View`], [`JobView`], [`Row`].
//! * Know how long others may take to take over the jobs of a dead node: [`takeover`].
//! * Let the task of a topic panic at any step, or at any job: [`watched`].

pub use crate::broadcast::ErasedBroadcast;
pub use crate::context::{BroadcastPlan, Plan, Running, TopicPlan, start};
pub use crate::listener::Outcomes;
pub use crate::listener::{ErasedBatches, ErasedListener, HandlerCall, Returned};
pub use crate::provider::DefinitionsWake;
pub use crate::store::memory::{JobView, Row, View};

use std::sync::Arc;
use std::time::Duration;

use crate::config::NodeSettings;
use crate::context::{ContextFactory, StartError};
use crate::environment::Environment;
use crate::job::JobId;
use crate::listener::Decided;
use crate::provider::Provider;

/// Within this time of the death of a node its jobs go back, if another node knows when its lease ends.
pub fn takeover(settings: &NodeSettings) -> Duration {
    crate::context::takeover(settings)
}

/// What a handler returns with this decision.
pub fn returned(decided: Decided) -> Returned {
    crate::listener::returned(Ok(decided))
}

/// Checks the settings of a factory, and returns the plan of its node and its provider without starting the node.
///
/// # Errors
/// As [`ContextFactory::start`].
pub async fn prepare(factory: ContextFactory) -> Result<(Plan, Provider), StartError> {
    factory.prepare().await.map(|prepared| (prepared.plan, prepared.provider))
}

/// The environment of a node that calls `watch` with each step which a topic begins, and with each job which it touches there. A panic
/// of it is a panic of the topic's task.
pub fn watched(
    environment: Environment,
    watch: impl Fn(&'static str, Option<&JobId>) + Send + Sync + 'static,
) -> Environment {
    environment.watched(Arc::new(watch))
}

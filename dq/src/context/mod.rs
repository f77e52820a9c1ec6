//! The running node: the factory that makes it, what belongs to the node, and what belongs to one topic.

use std::any::Any;

mod condition;
mod error;
mod factory;
pub(crate) mod node;
mod subscription;
mod timer;
mod topic;

pub use condition::Condition;
pub use error::Error;
pub use factory::problems::{BadStoreUrl, ListenerAt, Need, Problem, StartError};
pub use factory::{ContextFactory, IntoStore, StoreChoice};
pub use node::channel_stats::ChannelHealth;
pub use node::handle::{Context, Stopped};
pub use node::health::{Health, HealthProbe};
pub use topic::stats::{Counters, TopicHealth};

#[cfg(test)]
mod tests;

/// The text of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no message)").into()
}

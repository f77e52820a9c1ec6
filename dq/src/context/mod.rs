//! The running node: the factory that makes it, what belongs to the node, and what belongs to one topic.

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
pub use node::channel_health::ChannelHealth;
pub use node::handle::{Context, Stopped};
pub use node::health::{Counters, Health, TopicHealth};
pub use node::probe::HealthProbe;

#[cfg(test)]
mod tests;

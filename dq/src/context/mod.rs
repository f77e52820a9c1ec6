//! The running node: its subsystems, and the factory that starts them.

mod ack;
mod broadcast;
mod channel_health;
mod condition;
mod crash;
mod error;
mod execute;
mod factory;
mod handle;
mod health;
pub(crate) mod plan;
mod probe;
mod problems;
mod pump;
mod reconnect;
mod refused;
mod retry;
mod shutdown;
mod signals;
mod subscription;
pub(crate) mod supervisor;
mod sweep;
mod timeout;
mod timer;
mod topic;
mod transfer;

pub use channel_health::ChannelHealth;
pub use condition::Condition;
pub use error::Error;
pub use factory::{ContextFactory, IntoStore, StoreChoice};
pub use handle::{Context, Stopped};
pub use health::{Counters, Health, TopicHealth};
pub use probe::HealthProbe;
pub use problems::{BadStoreUrl, ListenerAt, Need, Problem, StartError};

#[cfg(test)]
mod tests;

//! The running node: its subsystems, and the factory that starts them.

mod ack;
mod age;
mod broadcast;
mod crash;
mod error;
mod execute;
mod factory;
mod handle;
mod health;
mod link;
mod plan;
mod problems;
mod retry;
mod shutdown;
mod signals;
mod smart_sleep;
mod subscription;
mod supervisor;
mod timeout;
mod timer;
mod topic;
mod transfer;

pub use error::Error;
pub use factory::{ContextFactory, IntoStore, StoreChoice};
pub use handle::{Context, Stopped};
pub use health::{Condition, Counters, Health, TopicHealth};
pub use problems::{BadStoreUrl, ListenerAt, Need, Problem, StartError};

#[cfg(test)]
mod tests;

//! The running node: its subsystems, and the factory that starts them.

mod ack;
mod broadcast;
mod channel_health;
mod condition;
mod crash;
pub(crate) mod error;
mod execute;
pub(crate) mod factory;
pub(crate) mod handle;
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
pub use handle::Stopped;
pub use health::{Counters, Health, TopicHealth};
pub use probe::HealthProbe;
pub use problems::StartError;

#[doc(hidden)] // documented at the root
pub use error::Error;
#[doc(hidden)] // documented at the root
pub use factory::ContextFactory;
#[doc(hidden)]
pub use factory::{IntoStore, StoreChoice};
#[doc(hidden)] // documented at the root
pub use handle::Context;
#[doc(hidden)]
pub use problems::{BadStoreUrl, ListenerAt, Need, Problem};

#[cfg(test)]
mod tests;

//! The running node: its subsystems, and the factory that starts them.

mod ack;
mod age;
mod broadcast;
mod contact;
mod crash;
mod discover;
mod execute;
mod factory;
mod handle;
mod health;
mod link;
mod plan;
mod problems;
mod retry;
mod shutdown;
mod smart_sleep;
mod stores;
mod subscription;
mod supervisor;
mod timeout;
mod timer;
mod topic;
mod transfer;

pub use factory::ContextFactory;
pub use handle::Context;
pub use health::{Condition, Counters, Health, TopicHealth};
pub use problems::{BadStoreUrl, ListenerAt, Need, Problem, StartError};
pub use stores::{IntoStore, StoreChoice};

pub(crate) use plan::{BroadcastPlan, Plan, TopicPlan};
pub(crate) use supervisor::{Running, start};

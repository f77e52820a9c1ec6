//! The running node: its subsystems, and the factory that starts them.

mod ack;
mod age;
mod broadcast;
mod crash;
mod execute;
mod health;
mod link;
mod plan;
mod retry;
mod shutdown;
mod smart_sleep;
mod subscription;
mod supervisor;
mod timeout;
mod timer;
mod topic;
mod transfer;

pub use health::{Condition, Counters, Health, TopicHealth};
pub(crate) use plan::{BroadcastPlan, Plan, TopicPlan};
pub(crate) use supervisor::{Running, start};

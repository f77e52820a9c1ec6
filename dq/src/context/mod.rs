//! The running node: its subsystems, and the factory that starts them.

mod plan;

pub(crate) use plan::{BroadcastPlan, Plan, TopicPlan};

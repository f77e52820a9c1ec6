//! Starting, running and stopping a node.
//!
//! [`ContextFactory`] checks what a program asks for and starts a node. [`Context`] is the handle of the running node, and
//! [`Health`] its state. [`StartError`] lists every reason why a node did not start.

// What is where:
//
// * `factory/` checks what a program asks for and makes a node of it. It uses the plan and the handle of the node.
// * `node/` has what belongs to the node: supervisor, handle, health, shutdown, broadcasts. It uses the parts and the counters
//   of its topics.
// * `topic/` has what belongs to one topic: its task, its state, and all that happens to its jobs on this node. It uses
//   neither of the two.
// * `problems.rs` has every reason why a node does not start, with its text.
//
// All use the files beside the folders.

mod condition;
mod error;
mod factory;
mod node;
mod node_permits;
mod problems;
mod subscription;
mod timer;
mod topic;

pub use condition::Condition;
pub use node::health::{ChannelHealth, Health, HealthProbe};
pub use node::signals::signals;
pub use problems::StartError;
pub use topic::stats::{Counters, Stopped, TopicDefect, TopicHealth};
pub(crate) use topic::takeover;

#[doc(hidden)] // documented at the root
pub use error::Error;
#[doc(hidden)] // documented at the root
pub use factory::ContextFactory;
#[doc(hidden)]
pub use factory::{IntoStore, StoreChoice, directory_of, open_store};
#[doc(hidden)] // documented at the root
pub use node::handle::Context;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use node::{BroadcastPlan, Plan, Running, TopicPlan, start};
#[doc(hidden)]
pub use problems::{InvalidStoreUrl, ListenerAt, Need, Problem};

use crate::environment::panic_message;

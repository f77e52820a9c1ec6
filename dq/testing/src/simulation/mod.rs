//! A simulation of many nodes that one seed decides: time, randomness, faults, who comes first.
//!
//! Real nodes, real providers and the memory store run on one thread under a virtual clock; between them is a network that
//! loses requests and answers, delays them, and executes requests after their client gave them up and went on. Processes
//! are paused and killed, the store falls back to an earlier state, clocks jump. After every step of the store a judge
//! looks at what it holds. A seed gives the same run again, byte for byte of its log.

mod after_step;
mod altered;
mod callers;
mod checker;
mod cluster;
mod cost;
mod faults;
mod kills;
mod lives;
mod network;
mod network_state;
mod node;
mod node_checks;
mod nodes;
mod process;
mod producer;
mod profile;
mod random;
mod receiving;
mod rules;
mod run;
mod script;
mod settings;
mod shrink;
mod signals;
mod sim;
mod smaller;
mod store;
mod sync;
mod tokio_time;
mod units;
pub(super) mod users;
mod version;

pub use kills::{KillReport, simulate_kills};
pub use profile::Profile;
pub use rules::RULES;
pub use run::{Options, Report, simulate};
pub use settings::Killing;
pub use shrink::{Shrunk, kind, shrink, shrink_by};
pub use sim::InjectedFault;

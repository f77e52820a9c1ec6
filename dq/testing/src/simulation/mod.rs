//! A simulation of many nodes that one seed decides: time, randomness, faults, who comes first.
//!
//! Real nodes, real providers and the memory store run on one thread under a virtual clock; between them is a network that
//! loses requests and answers, delays them, and executes requests after their client gave them up and went on. Processes
//! are paused and killed, the store falls back to an earlier state, clocks jump. After every step of the store a judge
//! looks at what it holds. A seed gives the same run again, byte for byte of its log.

mod callers;
mod checker;
mod cluster;
mod cost;
mod faults;
mod kills;
mod network;
mod nodes;
mod process;
mod producer;
mod random;
mod receiving;
mod run;
mod script;
mod shrink;
mod sim;
mod smaller;
mod store;
mod terms;
mod tokio_time;
pub(super) mod users;

pub use kills::{KillReport, Killing, simulate_kills};
pub use run::{Options, Report, simulate};
pub use shrink::{Shrunk, kind, shrink, shrink_by};
pub use sim::Struck;
pub use terms::Profile;

/// The rules of PROTOCOL.md that can be taken away, to see that the judge notices.
pub const RULES: [u8; 15] = [2, 6, 7, 8, 9, 10, 12, 13, 15, 17, 18, 19, 20, 21, 23];

//! Simulations of a user's program: its own listeners on real nodes, with faults, in virtual time, each run decided by a seed.
//!
//! [`simulate`] begins one. What the nodes of the engine are for dq's own tests, they are here with the user's listeners:
//! the same network, the same judge, and an account of what happened to each job that a person can read.

mod choose;
mod clock;
mod faults;
mod finding;
mod inject;
mod left_out;
mod narrate;
mod nodes;
mod occasions;
mod only;
mod panics;
mod play;
mod program;
mod progress;
mod report;
mod seeds;
mod shrink;
mod simulation;
mod spawned;
mod trace;
mod verdict;
mod versions;
mod watched;
mod workload;

pub use choose::choose;
pub use clock::now;
pub use faults::Faults;
pub use finding::Finding;
pub use report::{Ended, Summary};
pub use simulation::{Simulation, simulate};
pub use verdict::Verdict;

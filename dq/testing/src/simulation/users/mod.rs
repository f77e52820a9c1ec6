//! Simulations of a user's program: its own listeners on real nodes, with faults, in virtual time. A seed decides each run.
//!
//! [`simulate`] builds one. It uses the network and the checker of dq's own simulation, with the user's listeners, and it
//! writes a readable account of what happened to each job.
//!
//! The modules in their order; each uses only modules before it, and those of the engine:
//!
//! * what users see: `verdict`, `faults`, `report`, `finding`, `choose`, `clock`, `simulation`;
//! * one run: `panics`, `only`, `versions`, `trace`, `program`, then what a program does in it (`spawned`, `left_out`,
//!   `narrate`, `inject`, `watched`, `nodes`, `occasions`, `workload`), and `play`;
//! * many runs: `progress`, `shrink`, `seeds`.

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

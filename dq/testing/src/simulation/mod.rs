//! A simulation of many nodes. One seed decides everything: time, randomness, faults and the order of events.
//!
//! Real nodes, real providers and the memory store run on one thread in virtual time. Between them is a network that loses and
//! delays requests and answers, and that executes requests after their client has given up. Processes are paused and killed, the
//! store falls back to an earlier state, and clocks jump. After every step of the store a checker compares everything with what
//! is allowed. A seed gives the same run again, down to each byte of its log.
//!
//! # The order of the modules
//!
//! A module imports only modules that come before it; `tests/tidy.rs` rejects circles. Data and traits are below, the engine is
//! above them, and what runs in it comes last.
//!
//! 1. Basics: `units`, `sync`, `random`, `rules` (which rule a run goes without), `version` (how the checker distinguishes
//!    jobs).
//! 2. Time: `tokio_time`, `cluster` (events and clocks), `process` (tasks that can be paused and killed).
//! 3. Data: `profile` and `settings` (what the seed decides), `checker`, `node`, `network_state`, `set_ledger` and `ledger`.
//! 4. One simulation: `sim` with the trait `Workload`, which is what the nodes do.
//! 5. The engine: `lives` (how nodes end), `node_checks`, `takeovers`, `signals`, `after_step`, `altered` with `altered_state` and
//!    `altered_ticks` (rules taken away at the seams), `follow_ups`, `job_sets`, `network`, `producer`, `store`.
//! 6. dq's own workload: `callers` with `operators` and `set_callers`, `script`, `receiving`, `nodes`, `faults`, `cost`.
//! 7. Runs: `run`, `smaller`, `shrink`.
//! 8. `users`: simulations of users' programs, the other workload.

mod after_step;
mod altered;
mod altered_state;
mod altered_ticks;
mod callers;
mod checker;
mod cluster;
mod cost;
mod faults;
mod file;
mod files;
mod follow_ups;
mod job_sets;
mod ledger;
mod lives;
mod network;
mod network_state;
mod node;
mod node_checks;
mod nodes;
mod operators;
mod process;
mod producer;
mod profile;
mod random;
mod receiving;
mod rules;
mod run;
mod script;
mod set_callers;
mod set_ledger;
mod settings;
mod shrink;
mod signals;
mod sim;
mod smaller;
mod store;
mod sync;
mod takeovers;
mod tokio_time;
mod units;
pub(super) mod users;
mod version;

pub use profile::Profile;
pub use run::{Options, Report, simulate};
pub use shrink::{Shrunk, kind, shrink, shrink_by};
pub use sim::InjectedFault;

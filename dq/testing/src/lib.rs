//! Tests for stores of dq, and for programs that use it.
//!
//! * [`simulate`]: runs a program's own listeners on several nodes, with faults, in virtual time. It finds handlers that are
//!   not idempotent, and replays each finding from its seed.
//! * [`conformance`]: the list of behaviours that every store has. The author of a store runs it with
//!   [`store_conformance!`](crate::store_conformance).
//! * [`model`]: random histories, executed on a store and on a plain reference.
//! * [`simulation`]: the engine behind `simulate`. dq's own tests run it with a checker of every rule.
//!
//! Nothing here is meant for production: misuse panics.

pub mod conformance;
pub mod model;
pub mod simulation;

pub use simulation::users::{Ended, Faults, Finding, Simulation, Summary, Verdict, choose, now, simulate};

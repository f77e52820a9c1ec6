//! Tests for stores of dq, and for programs that use it.
//!
//! * [`simulate`]: runs a program's own listeners on several nodes, with faults, in virtual time. It finds handlers that are
//!   not idempotent, and replays each finding from its seed. [`Faults`], [`choose`] and [`now`] belong to it, and so do its
//!   results [`Summary`], [`Finding`] and [`Ended`].
//! * [`conformance`]: the behaviours that every store must have. The author of a store runs them with
//!   [`store_conformance!`](crate::store_conformance).
//! * [`disk`]: a directory in memory, with faults and power cuts, for what a store keeps in files.
//! * [`model`]: random histories, executed on a store and on a simple reference.
//! * [`simulation`]: the engine behind `simulate`. dq's own tests run it with a checker of every rule.
//!
//! [`conformance`] and [`model`] come with the feature `stores`, which is on by default: without it fewer crates are built.
//!
//! Nothing here is for production: misuse panics.

#[cfg(feature = "stores")]
pub mod conformance;
pub mod disk;
#[cfg(feature = "stores")]
pub mod model;
pub mod simulation;

pub use simulation::users::{Ended, Faults, Finding, Simulation, Summary, Verdict, choose, now, simulate};

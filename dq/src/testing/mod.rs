//! The testing kit, behind the feature `testing`.
//!
//! * [`Harness`]: a node on a memory store with a hand-cranked clock: jobs that wait for days run at once.
//! * [`job`], [`channel`], [`provider`]: what a handler is called with, for a test of the handler alone.
//! * [`conformance`]: the list of behaviours that every store has, and [`model`]: random histories on a store and on a plain
//!   reference, both for who writes a store; [`ManualClock`]: a store's clock that
//!   stands still until it is moved by hand.
//! * [`UnderWay`]: lets the paused clock stand while a real server is asked.
//! * [`simulation`]: many nodes, a bad network and a judge, all decided by one seed.
//!
//! Nothing here is meant for production: what is misused panics.

pub mod conformance;
mod fakes;
mod harness;
mod manual_clock;
pub mod model;
pub mod simulation;
mod under_way;

pub use fakes::{FakeJob, channel, job, provider};
pub use harness::Harness;
pub use manual_clock::ManualClock;
pub use under_way::UnderWay;

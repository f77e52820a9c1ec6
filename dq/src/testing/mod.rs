//! The testing kit, behind the feature `testing`.
//!
//! * [`Harness`]: a node on a memory store with a hand-cranked clock: jobs that wait for days run at once.
//! * [`job`], [`channel`], [`provider`]: what a handler is called with, for a test of the handler alone.
//! * [`conformance`]: the list of behaviours that every store has, and [`model`]: random histories on a store and on a plain
//!   reference, both for who writes a store; [`ManualClock`]: a store's clock that
//!   stands still until it is moved by hand.
//! * [`UnderWay`]: lets the paused clock stand while a real server is asked.
//! * [`simulate`]: a program's own listeners on several nodes, with faults, in virtual time: finds handlers that are not
//!   idempotent, and replays what it finds by its seed.
//! * [`simulation`]: the engine of it, which dq's own tests run with a judge of every rule.
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
pub use simulation::users::{Ended, Faults, Finding, Simulation, Summary, Verdict, choose, now, simulate};
pub use under_way::UnderWay;

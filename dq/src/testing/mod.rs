//! The testing kit, behind the feature `testing`.
//!
//! * [`Harness`] runs a node on a memory store under virtual time: [`advance`](Harness::advance) it by days, and every
//!   job that is due in that time runs at once.
//! * [`job`], [`batch`], [`channel`] and [`provider`] make the arguments of a handler, to test the handler alone; [`FakeJob`]
//!   makes a job with an attempt, headers or a fence.
//!
//! The crate `dq-testing` has `simulate`, which runs a program's listeners on several nodes and injects faults.
//!
//! Use this module in tests only: it panics on misuse. What is hidden here is for authors of stores and may change with
//! every version.

mod batches;
mod fakes;
mod harness;
mod in_flight;
mod manual_clock;
#[doc(hidden)]
pub mod seam;

pub use batches::{BatchDecisions, batch};
pub use fakes::{FakeJob, channel, job, provider};
pub use harness::Harness;
#[doc(hidden)]
pub use in_flight::InFlight;
#[doc(hidden)]
pub use manual_clock::ManualClock;

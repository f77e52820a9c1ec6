//! The testing kit, behind the feature `testing`.
//!
//! * [`Harness`]: a node on a memory store with a manual clock. Jobs that wait for days run at once.
//! * [`job`], [`channel`], [`provider`]: the arguments of a handler, for a test of the handler alone.
//! * [`ManualClock`]: a store's clock that stands still until the test moves it.
//! * [`InFlight`]: holds the paused clock while a real server is asked.
//!
//! The crate `dq-testing` has the rest: `simulate`, which runs a program's listeners on several nodes with faults, and the
//! conformance suite for authors of stores.
//!
//! Nothing here is meant for production: misuse panics.

mod fakes;
mod harness;
mod in_flight;
mod manual_clock;
#[doc(hidden)]
pub mod seam;

pub use fakes::{FakeJob, channel, job, provider};
pub use harness::Harness;
pub use in_flight::InFlight;
pub use manual_clock::ManualClock;

//! What dq reports to `tracing`: spans for add, claim, run and settle; the lines of the log and their levels; and never a payload;
//! and the links between traces.
//!
//! This is a test program of its own in which every test has a subscriber. `tracing` caches for the whole process whether a
//! call site has one, so beside tests without a subscriber these tests could miss events.

mod backend;
mod batches;
mod broadcasts;
mod ends;
mod levels;
mod links;
mod metrics;
mod outages;
mod recorder;
#[allow(dead_code, reason = "the framework tests use the rest")]
#[path = "../framework/scripted_listener.rs"]
mod scripted_listener;
mod secrets;
mod servers;
mod spans;

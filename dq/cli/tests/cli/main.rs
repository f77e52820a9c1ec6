//! The program `dq` as users run it, on real servers, and what an export and an import do to random jobs.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod changes;
mod commands;
mod files;
mod guide;
mod lines;
mod program;
mod refusals;
mod round_trip;

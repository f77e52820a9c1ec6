//! The program `dq` as users run it, on real servers, and what an export and an import do to random jobs.

#![expect(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod at_work;
mod changes;
mod commands;
mod cost;
mod doctor;
mod doors;
mod files;
mod follow_ups;
mod guide;
mod in_process;
mod limits;
mod lines;
mod past;
mod program;
mod refusals;
mod round_trip;
mod serve;
mod sets;
mod top;
mod verbs;
mod watch;

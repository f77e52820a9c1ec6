//! The tests of `main.rs` on a `file:` store, without `startup`, which chooses stores itself, and `signals`, whose processes choose
//! theirs.
//!
//! Tokio's paused clock stands still while an answer waits for the disk ([`dq_tests::PacedStore`]), so a test expects the same
//! as on the memory store, to the millisecond.

#![cfg(unix)]

mod answers;
#[path = "backend/file.rs"]
mod backend;
mod batches;
mod blocking;
mod broadcasts;
mod changing;
mod concurrency;
mod crashes;
mod defects;
mod ending;
mod failures;
mod follow_ups;
mod full;
mod groups;
mod health;
mod histories;
mod idle;
mod isolation;
mod job_sets;
mod keeping;
mod lookahead;
mod nearby;
mod nodes;
mod on_claim;
mod outages;
mod parking;
mod pausing;
mod pending;
mod periodic;
mod priorities;
mod provider;
mod rates;
mod rejoins;
mod restarts;
mod results;
mod retries;
mod runs;
mod schedules;
mod scripted_listener;
mod shutdown;
mod starved;
mod statistics;
mod taken;
mod timeouts;

//! The tests of `main.rs` on a Redis store, without `startup`, which chooses stores itself, and
//! `signals`, whose processes choose theirs.
//!
//! Nodes and server share tokio's paused clock ([`dq_tests::PacedStore`]), so a test expects the same of both stores, to the
//! millisecond, and an hour takes no time.

mod answers;
#[path = "backend/redis.rs"]
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

#[test]
fn all_stores_run_the_same_test_modules() {
    let modules = |text: &'static str| text.lines().filter(|line| line.starts_with("mod ")).collect::<Vec<_>>();
    let mut on_memory = modules(include_str!("main.rs"));
    on_memory.retain(|line| !["mod startup;", "mod signals;"].contains(line));
    assert_eq!(on_memory, modules(include_str!("on_redis.rs")));
    assert_eq!(on_memory, modules(include_str!("on_file.rs")));
}

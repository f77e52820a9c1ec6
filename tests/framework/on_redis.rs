//! The same tests as in `main.rs`, on a Redis store: all but `startup`, which names stores.
//!
//! Nodes and server agree on the time of tokio's paused clock ([`dq_tests::PacedStore`]), so a test says of both stores the
//! same, to the millisecond, and an hour is over in no time.

mod blocking;
mod broadcast;
mod broadcasts;
mod concurrency;
mod crashes;
mod ending;
mod failures;
mod health;
mod idle;
mod nodes;
mod on_claim;
mod outages;
mod parking;
mod pending;
mod provider;
mod rejoins;
mod retries;
mod runs;
mod shutdown;
#[path = "stage/redis.rs"]
mod stage;
mod timeouts;
mod worker;

#[test]
fn both_stores_run_the_same_test_modules() {
    let modules = |text: &'static str| text.lines().filter(|line| line.starts_with("mod ")).collect::<Vec<_>>();
    let mut here = modules(include_str!("on_redis.rs"));
    here.push("mod startup;");
    here.sort_unstable();
    assert_eq!(modules(include_str!("main.rs")), here);
}

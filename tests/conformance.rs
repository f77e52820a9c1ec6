//! Every store passes the same list of behaviours.

use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::memory::MemoryStore;
use dq::testing::ManualClock;
use dq::testing::conformance::{BEHAVIOURS, StoreFixture};

/// The memory store under a clock that is moved by hand.
struct MemoryFixture {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

impl MemoryFixture {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(0));
        Self { store: Arc::new(MemoryStore::new(clock.clone())), clock }
    }
}

impl StoreFixture for MemoryFixture {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn clock(&self) -> u64 {
        self.clock.micros()
    }

    fn set_clock(&self, micros: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.clock.set(micros);
        Box::pin(async {})
    }
}

mod memory {
    use super::MemoryFixture;

    dq::store_conformance!(async { MemoryFixture::new() });
}

mod redis {
    use dq_tests::redis::RedisFixture;

    dq::store_conformance!(async { RedisFixture::start() });
}

/// The section of the rules; the others name tests of other kinds, which `tests/tidy.rs` looks after.
fn table() -> &'static str {
    let all = include_str!("../docs/requirements.md");
    let section = all.split("## Rules of the protocol").nth(1).unwrap();
    section.split("## The node's part").next().unwrap()
}

#[test]
fn every_behaviour_is_named_once() {
    let mut names = BEHAVIOURS.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), BEHAVIOURS.len());
}

#[test]
fn the_table_of_rules_names_exactly_the_behaviours_there_are() {
    let mut named: Vec<&str> = table().split('`').filter(|word| BEHAVIOURS.contains(word)).collect();
    named.sort_unstable();
    named.dedup();
    let mut behaviours = BEHAVIOURS.to_vec();
    behaviours.sort_unstable();
    assert_eq!(named, behaviours);
    let rows = table().lines().filter(|line| line.starts_with("| ") && line.split('`').count() > 1);
    for behaviour in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        assert!(BEHAVIOURS.contains(&behaviour), "the table names `{behaviour}`, which is no behaviour");
    }
}

#[test]
fn the_table_of_rules_has_every_rule() {
    for rule in 1..=26 {
        assert!(table().lines().any(|line| line.starts_with(&format!("| {rule} |"))), "rule {rule}");
    }
}

//! Every store does what the memory store does, operation by operation, in random histories, and the memory store keeps its
//! invariants in them.
//!
//! `DQ_MODEL_SEEDS=17..18` replaces the usual seeds: to replay one that failed, or to run many.

use std::future::Future;
use std::ops::Range;

use dq_testing::conformance::StoreFixture;
use dq_testing::model;
use dq_tests::Fixture;

/// Runs the seeds in `DQ_MODEL_SEEDS`, or the usual ones, which take a few seconds.
fn check<F: StoreFixture, O: Future<Output = F> + Send + 'static>(test: &str, usual: Range<u64>, open: impl Fn() -> O) {
    let seeds = std::env::var("DQ_MODEL_SEEDS").map_or(usual, |text| {
        let (from, to) = text.split_once("..").expect("DQ_MODEL_SEEDS=FROM..TO");
        from.parse().expect("a number before the dots")..to.parse().expect("a number after the dots")
    });
    if let Err(difference) = model::check(seeds, || Box::pin(open())) {
        let seed = difference.seed;
        panic!(
            "{difference}\nreplay it: DQ_MODEL_SEEDS={seed}..{} cargo test -p dq-tests --test model {test}",
            seed + 1
        );
    }
}

#[test]
fn the_memory_store_keeps_its_invariants() {
    check("memory", 0..400, || async { Fixture::memory() });
}

#[test]
fn the_changes_of_all_steps_make_a_second_store_the_same() {
    check("second_store", 0..400, || async { Fixture::journaled() });
}

#[test]
fn the_file_store_does_what_the_memory_store_does() {
    check("file", 0..100, Fixture::file);
}

#[test]
fn the_redis_store_does_what_the_memory_store_does() {
    check("redis", 0..60, || async { Fixture::redis_in_order() });
}

//! Every store does what the reference does, operation by operation, in random histories.
//!
//! `DQ_MODEL_SEEDS=17..18` replaces the usual seeds: to replay one that failed, or to run many.

use std::ops::Range;

use dq_testing::model::{self, Difference};
use dq_tests::journaled::JournaledFixture;
use dq_tests::memory::MemoryFixture;
use dq_tests::redis::RedisFixture;

/// The seeds in `DQ_MODEL_SEEDS`, or the usual ones, which take a few seconds.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("DQ_MODEL_SEEDS") else { return usual };
    let (from, to) = text.split_once("..").expect("DQ_MODEL_SEEDS=FROM..TO");
    from.parse().expect("a number before the dots")..to.parse().expect("a number after the dots")
}

fn report(test: &str, result: Result<(), Difference>) {
    if let Err(difference) = result {
        let seed = difference.seed;
        panic!(
            "{difference}\nreplay it: DQ_MODEL_SEEDS={seed}..{} cargo test -p dq-tests --test model {test}",
            seed + 1
        );
    }
}

#[test]
fn the_memory_store_does_what_the_reference_does() {
    report("memory", model::check(seeds(0..400), || Box::pin(async { MemoryFixture::empty() })));
}

#[test]
fn the_changes_of_all_steps_make_a_second_store_the_same() {
    report("second_store", model::check(seeds(0..400), || Box::pin(async { JournaledFixture::empty() })));
}

#[test]
fn the_redis_store_does_what_the_reference_does() {
    report("redis", model::check(seeds(0..60), || Box::pin(async { RedisFixture::in_order() })));
}

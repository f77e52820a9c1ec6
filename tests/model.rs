//! Every store does what the reference does, step by step, in random histories.
//!
//! `DQ_MODEL_SEEDS=17..18` runs other seeds than the usual ones: one that failed, or many.

use std::ops::Range;
use std::sync::Arc;

use dq::environment::StoreClock;
use dq::store::Store;
use dq::store::memory::MemoryStore;
use dq::testing::conformance::StoreFixture;
use dq::testing::{ManualClock, model};

/// How many histories a store goes through each time.
const USUAL: Range<u64> = 0..400;

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("DQ_MODEL_SEEDS") else { return USUAL };
    let (from, to) = text.split_once("..").expect("DQ_MODEL_SEEDS=FROM..TO");
    from.parse().expect("a number before the dots")..to.parse().expect("a number behind the dots")
}

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

#[test]
fn the_memory_store_does_what_the_reference_does() {
    if let Err(difference) = model::check(seeds(), || Box::pin(async { MemoryFixture::new() })) {
        panic!("{difference}\nreplay it: DQ_MODEL_SEEDS={0}..{1}", difference.seed, difference.seed + 1);
    }
}

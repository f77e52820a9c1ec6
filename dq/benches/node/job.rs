//! The job that the benchmarks move, and a factory of dq on a store.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "nothing")]
pub(crate) struct Nothing {
    payload: String,
}

/// A job with the payload of the bare client.
pub(crate) fn nothing() -> Nothing {
    serde_json::from_str(dq_bench::PAYLOAD).unwrap()
}

/// A factory that takes nothing from the environment.
pub(crate) fn factory(store: &str) -> ContextFactory {
    ContextFactory::new("bench").store(store).without_inventory().variables([("", ""); 0])
}

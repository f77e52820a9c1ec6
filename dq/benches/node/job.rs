//! The job that the benchmarks move, and a factory of dq on a store.

use dq::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize, DelayJob)]
#[job(topic = "nothing")]
pub(crate) struct Nothing {
    payload: String,
}

/// A job whose payload is [`PAYLOAD`](dq_bench::PAYLOAD), which the bare client sends as it is.
pub(crate) fn nothing() -> Nothing {
    let text = dq_bench::PAYLOAD.strip_prefix(r#"{"payload":""#).and_then(|text| text.strip_suffix(r#""}"#));
    Nothing { payload: text.unwrap().to_owned() }
}

/// A factory that takes nothing from the environment.
#[allow(dead_code, reason = "a benchmark that makes its stores by hand needs none")]
pub(crate) fn factory(store: &str) -> ContextFactory {
    ContextFactory::new("bench").store(store).without_inventory().variables([("", ""); 0])
}

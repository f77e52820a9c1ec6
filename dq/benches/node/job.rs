//! The job that the benchmarks move, a factory of dq on a store, and callers who add.

use std::ops::Range;
use std::time::Duration;

use dq::context::IntoStore;
use dq::prelude::*;
use dq::provider::{AddMany, Call};
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
pub(crate) fn factory(store: impl IntoStore) -> ContextFactory {
    ContextFactory::new("bench").store(store).without_inventory().variables([("", ""); 0])
}

/// Adds so many jobs, 1,000 a call; `add` makes the call for those of these numbers.
#[allow(dead_code, reason = "some benchmarks add in other ways")]
pub(crate) async fn by_thousands(jobs: u64, add: impl Fn(Range<u64>) -> Call<AddMany>) {
    for from in (0..jobs).step_by(1_000) {
        add(from..jobs.min(from + 1_000)).await.unwrap().all().unwrap();
    }
}

/// Each caller adds `batch` jobs at a time, due after this time, and waits for the answer.
#[allow(dead_code, reason = "some benchmarks add in other ways")]
pub(crate) async fn call(provider: &Provider, jobs: usize, (callers, batch): (usize, usize), after: Duration) {
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let provider = provider.clone();
        tasks.spawn(async move {
            for from in (caller * batch..jobs).step_by(callers * batch) {
                if batch == 1 {
                    provider.add(nothing()).after(after).await.unwrap();
                } else {
                    let jobs = (from..jobs.min(from + batch)).map(|_| nothing());
                    provider.add_many(jobs).after(after).await.unwrap().all().unwrap();
                }
            }
        });
    }
    tasks.join_all().await;
}

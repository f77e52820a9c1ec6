//! Waits for an answer of the store up to a time.

use std::future::Future;
use std::time::Duration;

use super::error::StoreError;
use crate::environment::Environment;

/// The answer of the store, unless it takes longer than `limit`.
pub(crate) async fn answered_within<T>(
    environment: &Environment,
    limit: Duration,
    operation: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = environment.sleep_until(environment.now() + limit) => {
            let reason = format!("no answer within {}", humantime::format_duration(limit));
            Err(StoreError::Unavailable { operation, reason })
        }
    }
}

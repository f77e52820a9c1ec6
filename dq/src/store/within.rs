//! Waits for an answer of the store up to a time.

use std::future::Future;
use std::time::Duration;

use humantime::format_duration;

use super::error::StoreError;
use crate::environment::Environment;

/// Says that no answer came within this time, and by which setting, if it is one.
pub(crate) fn no_answer(waited: Duration, setting: Option<&str>) -> String {
    let setting = setting.map_or_else(String::new, |setting| format!(" (`{setting}`)"));
    format!("no answer within {}{setting}", format_duration(waited))
}

/// The answer of the store, unless it takes longer than `call_timeout`.
pub(crate) async fn in_call_timeout<T>(
    environment: &Environment,
    call_timeout: Duration,
    operation: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    answered_within(environment, call_timeout, Some("call_timeout"), operation, answer).await
}

/// The answer of the store, unless it takes longer than `limit`; `setting` is the one that says so, if one does.
pub(crate) async fn answered_within<T>(
    environment: &Environment,
    limit: Duration,
    setting: Option<&str>,
    operation: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::select! {
        biased;
        answer = answer => answer,
        () = environment.sleep_until(environment.now() + limit) => {
            Err(StoreError::Unavailable { operation, reason: no_answer(limit, setting) })
        }
    }
}

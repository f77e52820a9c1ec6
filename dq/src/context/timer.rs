//! Waits for a time.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::environment::Environment;

/// Waits for one point in time after another. It keeps its sleep as long as its end stays the same, so asking for the same one again
/// costs nothing. Each task of a node has one.
pub(super) struct Timer {
    environment: Environment,
    sleep: Option<(Duration, BoxFuture<'static, ()>)>,
}

impl Timer {
    pub(super) const fn new(environment: Environment) -> Self {
        Self { environment, sleep: None }
    }

    /// Ready once `at` has come; never for `None`. Cancel safe.
    pub(super) async fn until(&mut self, at: Option<Duration>) {
        let Some(at) = at else { return std::future::pending().await };
        if self.sleep.as_ref().is_none_or(|(end, _)| *end != at) {
            self.sleep = Some((at, self.environment.sleep_until(at)));
        }
        if let Some((_, sleep)) = &mut self.sleep {
            sleep.await;
        }
        self.sleep = None;
    }
}

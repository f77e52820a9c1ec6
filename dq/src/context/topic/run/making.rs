//! Making: a function of the program makes the payload of a tick, on the user's runtime.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};

use super::{RunEvent, Tasks};
use crate::environment::{Runtime, Task};
use crate::job::{JobId, Token};
use crate::schedule::Made;

/// What makes a payload.
pub(crate) type PayloadFunction = fn() -> BoxFuture<'static, Made>;

/// A task that calls the function and reports what it made. It gives the function up once that has taken as long as a handler may.
pub(crate) fn making(
    tasks: &Arc<Tasks>,
    id: JobId,
    token: Token,
    function: PayloadFunction,
    timeout: Option<Duration>,
) -> BoxFuture<'static, ()> {
    let (abort, registration) = AbortHandle::new_pair();
    let timer = timeout.filter(|timeout| !timeout.is_zero()).map(|timeout| {
        let over = tasks.environment.sleep_until(tasks.environment.now().saturating_add(timeout));
        let (reports, id) = (tasks.clone(), id.clone());
        tasks.environment.spawn(Runtime::Own, async move {
            over.await;
            // If it has returned just now, this comes too late and counts for nothing.
            reports.send(RunEvent::Made(id, token, Err("it took longer than the `timeout` of the topic".into())));
            abort.abort();
        })
    });
    let mut report = Report { made: Some((tasks.clone(), id, token)), timer };
    Box::pin(Abortable::new(async move { report.send(function().await) }, registration).map(drop))
}

/// Tells the topic what a function made; also that it was dropped before.
struct Report {
    made: Option<(Arc<Tasks>, JobId, Token)>,
    /// Stops the timer of the function.
    timer: Option<Task>,
}

impl Report {
    fn send(&mut self, made: Made) {
        if let Some((tasks, id, token)) = self.made.take() {
            tasks.send(RunEvent::Made(id, token, made));
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.send(Err("it was dropped before it returned".into()));
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

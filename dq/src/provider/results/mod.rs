//! Results: callers wait for what the run that acks a job leaves.
//!
//! All callers of a provider that wait for results of one topic share a task, with one listener to the moves of the topic and a [`table`] of
//! ids. So ten thousand callers cost the store one subscription, and a topic whose results nobody awaits costs nothing. A move only tells which
//! job to look at: what has become of it is read from the store, for many jobs in one query. As any move may be lost, each job is also looked
//! at after growing pauses.

mod table;
mod task;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use self::table::{Ended, Waiter};
use self::task::{Message, Watching};
use super::error::FailureReason;
use super::events::Source;
use crate::environment::Runtime;
use crate::job::JobId;

/// What callers need to wait for results of a topic.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// The number of the next caller.
    next: AtomicU64,
    /// The task, which the first caller starts, and which ends with the inbox of the topic.
    task: OnceLock<mpsc::UnboundedSender<Message>>,
}

impl Results {
    /// Waits from `since` on until a time. Dropping the future takes the caller out.
    pub(super) async fn wait(
        &self,
        source: impl FnOnce() -> Source,
        id: JobId,
        since: Duration,
        until: Duration,
    ) -> Ended {
        let (answer, answered) = oneshot::channel();
        let number = self.next.fetch_add(1, Relaxed);
        let to = self.task.get_or_init(|| {
            let ((to, messages), source) = (mpsc::unbounded_channel(), source());
            let environment = source.environment.clone();
            environment.spawn(Runtime::Own, Watching::new(source, messages).run());
            to
        });
        let waiter = Waiter { number, since, until, answer, is_asked: false };
        // Both fail only once the runtime of dq has ended.
        to.send(Message::Wait(id.clone(), waiter)).map_err(|_| FailureReason::Stopped)?;
        let _leaves = Leaves { to: to.clone(), id, number };
        answered.await.map_err(|_| FailureReason::Stopped)?
    }
}

/// Takes a caller out when its future is dropped.
struct Leaves {
    to: mpsc::UnboundedSender<Message>,
    id: JobId,
    number: u64,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        // Without the task there is nothing to take it out of.
        let _ = self.to.send(Message::Leave(self.id.clone(), self.number));
    }
}

//! Starts a coalescer again after a panic, which is a defect of dq, as the supervisor of a node starts a topic again.
//!
//! A panic can leave the numbers in any state, so the coalescer goes on under a new identity. Nothing can be repeated under the
//! old one, so callers of a batch that may have left receive *unknown* (rule 18). All other requests were certainly not done
//! and go out again, in their order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use futures_util::FutureExt;

use super::batch::Batch;
use super::coalescer::Coalescer;
use super::guard::Guard;
use super::inbox::Inbox;
use super::seat::{Bell, NearTask, Seat};
use crate::environment::{Runtime, panic_message};

/// The pause before a coalescer that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Closes the inbox when its task ends, also when the runtime drops the task: every caller gets an answer.
struct Ending(Arc<Inbox>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
        self.0.drop_requests();
        self.0.ended.cancel();
    }
}

impl Coalescer {
    /// Starts the coalescer of the inbox: as a task on dq's own thread, or in a seat that the callers share with it.
    pub(super) fn start(mut self) {
        let (environment, inbox) = (self.environment.clone(), Arc::clone(&self.inbox));
        let Some(shared) = environment.shared() else {
            environment.spawn(Runtime::Own, self.keep_working());
            return;
        };
        let bell = Arc::new(Bell::new(shared));
        self.bell = Some(Arc::clone(&bell));
        let seat = Arc::new(Seat::new(Arc::clone(&bell), Box::pin(self.keep_working())));
        let _ = inbox.seat.set((bell, Arc::downgrade(&seat)));
        environment.spawn(Runtime::Own, Guard::new(Arc::clone(&seat), inbox, environment.clone()).watch());
        environment.spawn(Runtime::Handler, NearTask(seat));
    }

    async fn keep_working(self) {
        let _ending = Ending(Arc::clone(&self.inbox));
        let mut coalescer = self; // dropped before the inbox ends
        while let Err(panic) = AssertUnwindSafe(coalescer.work()).catch_unwind().await {
            let restart_at = coalescer.start_over(&panic_message(&*panic));
            coalescer.sleep_until(restart_at).await;
        }
    }

    /// Keeps what was certainly not done, and forgets everything else. Returns when to go on: after a pause, or when the time of
    /// the first caller is over.
    fn start_over(&mut self, panic: &str) -> Duration {
        let now = self.environment.now();
        self.restarts.fetch_add(1, Relaxed);
        tracing::error!(topic = %self.inbox.key.topic, panic, "dq panicked in the task that sends the adds and commands of this topic, and restarts it; please report this as a bug");
        let mut fresh = Self::new(
            Arc::clone(&self.inbox),
            Arc::clone(&self.store),
            self.environment.clone(),
            self.retries.clone(),
            Arc::clone(&self.restarts),
            Arc::clone(&self.party),
        );
        fresh.bell = self.bell.take();
        fresh.bell.iter().for_each(|bell| bell.is_busy.store(true, SeqCst));
        let old = std::mem::replace(self, fresh);
        let mut batches: Vec<_> = old.in_flight.into_iter().chain(old.queue.into_batches()).collect();
        batches.sort_by_key(|batch| batch.order);
        self.taken.extend(batches.into_iter().flat_map(Batch::into_unsent).chain(old.taken));
        let first = self.taken.iter().map(|posted| posted.deadline.at).min();
        first.unwrap_or(Duration::MAX).min(now + RESTART_PAUSE)
    }
}

//! Work outside a runtime whose clock is paused, for example a request to a server.
//!
//! A paused clock advances as soon as no task of its runtime has anything to do, and a task that waits for an answer
//! from outside looks idle. While an [`InFlight`] exists, the clock of its runtime stands still, and
//! [`Harness::settle`](super::Harness::settle) waits. So nodes can use a real server under virtual time, and its
//! answers take none of that time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

thread_local! {
    /// A runtime with a paused clock has one thread.
    static HERE: Arc<Ongoing> = Arc::default();
}

#[derive(Default)]
struct Ongoing {
    now: Mutex<Now>,
    started: AtomicU64,
    quiet: Notify,
}

#[derive(Default)]
struct Now {
    count: usize,
    /// Tokio stops a paused clock while a blocking job runs. Dropping this sender ends the job.
    hold: Option<Sender<()>>,
}

impl Ongoing {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks work outside this thread's runtime as in flight until it is dropped.
#[must_use = "the work counts as finished when this is dropped"]
pub struct InFlight(Arc<Ongoing>);

impl InFlight {
    /// Marks the beginning of work outside the runtime.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn begin() -> Self {
        let here = HERE.with(Arc::clone);
        here.started.fetch_add(1, Ordering::Relaxed);
        let mut now = here.now();
        now.count += 1;
        if now.count == 1 {
            let (hold, released) = channel::<()>();
            tokio::task::spawn_blocking(move || released.recv().is_err());
            now.hold = Some(hold);
        }
        drop(now);
        Self(here)
    }

    /// How often work has started on this thread.
    pub(super) fn count_started() -> u64 {
        HERE.with(|here| here.started.load(Ordering::Relaxed))
    }

    /// Waits until no work is in flight on this thread.
    pub(super) async fn wait_for_none() {
        let here = HERE.with(Arc::clone);
        loop {
            let quiet = here.quiet.notified();
            if here.now().count == 0 {
                return;
            }
            quiet.await;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut now = self.0.now();
        now.count -= 1;
        if now.count == 0 {
            now.hold = None;
            drop(now);
            self.0.quiet.notify_waiters();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_stands_still_while_work_is_in_flight() {
        let (start, real) = (Instant::now(), std::time::Instant::now());
        let (told, answer) = tokio::sync::oneshot::channel();
        let server = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            told.send(()).unwrap();
        });
        let request = async {
            let _in_flight = InFlight::begin();
            answer.await.unwrap();
            start.elapsed()
        };
        let (answered, ()) = tokio::join!(request, sleep(Duration::from_secs(3600)));
        assert_eq!(answered, Duration::ZERO, "the hour passed after the answer");
        assert_eq!(start.elapsed(), Duration::from_secs(3600));
        assert!(real.elapsed() >= Duration::from_millis(20));
        server.join().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn wait_for_none_waits_for_all_work() {
        let before = InFlight::count_started();
        let (one, two) = (InFlight::begin(), InFlight::begin());
        let end = async {
            tokio::task::yield_now().await;
            drop(one);
            tokio::task::yield_now().await;
            drop(two);
        };
        tokio::join!(biased; InFlight::wait_for_none(), end);
        InFlight::wait_for_none().await;
        assert_eq!(InFlight::count_started(), before + 2);
    }
}

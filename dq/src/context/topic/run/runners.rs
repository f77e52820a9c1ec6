//! Runners: the tasks on the user's runtime in which handlers run. There are at most as many as permits.
//!
//! A runner takes runs from a queue, one after the other, and ends when the queue is empty. The topic of fast handlers hands over
//! more runs than it has permits. So the next handler starts as soon as one returns, and dq's own thread, which may be busy with
//! a large answer, starts and settles many at once. A run in the queue has not begun, and can be taken back. With 256 runs in the
//! queue beyond the permits a drain ran at 387,000 jobs a second on the memory store, without any at 269,000
//! (`docs/internals/performance.md`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::task::PreparedRun;
use super::text;
use crate::environment::Environment;

/// How many handlers a runner runs before it lets other tasks of its runtime run, if none of them waits for anything.
const RUNS_AT_ONCE: usize = 16;

/// The runners of a topic, and the runs that wait for one.
pub(crate) struct Runners(Arc<Shared>);

struct Shared {
    environment: Environment,
    state: Mutex<RunnersState>,
    /// How many runs are in the queue.
    queued: AtomicUsize,
    /// How many handlers have returned.
    returned: AtomicUsize,
}

#[derive(Default)]
struct RunnersState {
    queue: VecDeque<PreparedRun>,
    runners: usize,
    /// Runners in which a handler runs.
    busy: usize,
    most: usize,
    /// Since when fewer handlers run than may, if so.
    room_since: Duration,
}

impl Runners {
    /// No runner yet, and no run.
    pub(crate) fn new(environment: Environment) -> Self {
        let (queued, returned) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Shared { environment, state: Mutex::default(), queued, returned }))
    }

    /// Puts these runs into the queue. Returns the runners to start, so that as many runs as possible have one, and at most `most`
    /// handlers run at a time.
    pub(crate) fn hand_over(&self, runs: &mut Vec<PreparedRun>, most: usize) -> Vec<BoxFuture<'static, ()>> {
        let mut state = self.0.lock();
        self.0.update(&mut state, |state| state.most = most);
        state.queue.extend(runs.drain(..));
        self.0.queued.store(state.queue.len(), Relaxed);
        let without_runner = state.queue.len().saturating_sub(state.runners - state.busy);
        let missing = without_runner.min(most.saturating_sub(state.runners));
        state.runners += missing;
        drop(state);
        (0..missing)
            .map(|_| {
                let runner = Runner { shared: Arc::clone(&self.0), doing: Doing::Waiting };
                Box::pin(runner.run()) as _
            })
            .collect()
    }

    /// How many runs wait for a runner.
    pub(crate) fn queued(&self) -> usize {
        self.0.queued.load(Relaxed)
    }

    /// Takes the runs out of the queue that were taken back, so that they wait for no permit. The task ends them.
    pub(crate) fn end_taken_back(&self) -> Option<BoxFuture<'static, ()>> {
        let mut state = self.0.lock();
        let (over, queue): (VecDeque<_>, _) =
            std::mem::take(&mut state.queue).into_iter().partition(PreparedRun::is_taken_back);
        state.queue = queue;
        self.0.queued.store(state.queue.len(), Relaxed);
        drop(state);
        if over.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            for run in over {
                drop(run.run().await);
            }
        }))
    }

    /// How many handlers have returned. It tells only whether one has since.
    pub(crate) fn returned(&self) -> usize {
        self.0.returned.load(Relaxed)
    }

    /// Since when fewer handlers run than may, if so: since then the first run in the queue has waited for nothing but its runtime.
    pub(crate) fn room_since(&self) -> Option<Duration> {
        let state = self.0.lock();
        state.has_room().then_some(state.room_since)
    }
}

impl RunnersState {
    const fn has_room(&self) -> bool {
        self.busy < self.most
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, RunnersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner) // its numbers are valid at any time
    }

    /// Changes how many handlers run, or may.
    fn update(&self, state: &mut RunnersState, change: impl FnOnce(&mut RunnersState)) {
        let had_room = state.has_room();
        change(state);
        if state.has_room() && !had_room {
            state.room_since = self.environment.now();
        }
    }
}

/// What a runner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Its task will be polled, and then it takes a run.
    Waiting,
    Running,
    /// It has left, and does not count any more.
    Left,
}

/// A task that runs handlers.
struct Runner {
    shared: Arc<Shared>,
    doing: Doing,
}

impl Runner {
    async fn run(mut self) {
        let mut runs = 0_usize;
        let mut next = self.next();
        while let Some(run) = next {
            // The drop of a future is user code, too. A panic in it ends the run, which says so, and not the runner.
            let ended = match AssertUnwindSafe(run.run()).catch_unwind().await {
                Ok(ended) => ended,
                Err(panic) => {
                    drop(text(panic));
                    None
                }
            };
            runs += 1;
            if runs.is_multiple_of(RUNS_AT_ONCE) {
                drop(ended);
                self.rest();
                back_of_the_queue().await;
                next = self.next();
            } else {
                // What follows from the end comes behind what other tasks of the runtime wait for.
                next = self.next();
                drop(ended);
            }
        }
    }

    /// The next run. `None`: there is none, or there are too many runners, and this one has left.
    fn next(&mut self) -> Option<PreparedRun> {
        let mut state = self.shared.lock();
        let next = if state.runners > state.most { None } else { state.queue.pop_front() };
        let was_busy = usize::from(self.doing == Doing::Running);
        self.shared.returned.fetch_add(was_busy, Relaxed);
        self.doing = if next.is_some() { Doing::Running } else { Doing::Left };
        self.shared.update(&mut state, |state| state.busy = state.busy + usize::from(next.is_some()) - was_busy);
        if next.is_none() {
            state.runners -= 1; // with the same lock: a run that comes now needs another runner
        }
        self.shared.queued.store(state.queue.len(), Relaxed);
        next
    }

    /// No handler runs in this runner until it is polled again.
    fn rest(&mut self) {
        self.doing = Doing::Waiting;
        self.shared.returned.fetch_add(1, Relaxed);
        self.shared.update(&mut self.shared.lock(), |state| state.busy -= 1);
    }
}

/// Lets the tasks run that are ready. Unlike `yield_now` of tokio, which keeps the task for this thread, it lets an idle thread take
/// the task: another handler may block this one.
async fn back_of_the_queue() {
    let mut is_back = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_back, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Drop for Runner {
    /// A runner that is dropped before it has left tells that its runtime has shut down: nothing in the queue will ever begin.
    fn drop(&mut self) {
        if self.doing == Doing::Left {
            return;
        }
        let mut state = self.shared.lock();
        let was_busy = usize::from(self.doing == Doing::Running);
        self.shared.update(&mut state, |state| state.busy -= was_busy);
        state.runners -= 1;
        let never = std::mem::take(&mut state.queue);
        self.shared.queued.store(0, Relaxed);
        drop(state);
        drop(never); // each run reports that it was dropped
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::context::topic::run::{Ended, RunEvent, RunTask, Tasks};
    use crate::context::topic::slab::RunId;
    use crate::environment::Seeded;
    use crate::job::Record;
    use crate::listener::{Decision, Delivered, Failure, RetryDelay};
    use crate::listener::{ErasedListener, HandlerCall, Returned};

    const MS: Duration = Duration::from_millis(1);

    /// Takes 10 ms, and notes how many handlers ran at most at a time.
    #[derive(Debug, Default)]
    struct Takes10Ms(Mutex<(usize, usize)>);

    impl ErasedListener for Takes10Ms {
        fn call(self: Arc<Self>, _: HandlerCall, _: Record, _: Delivered) -> BoxFuture<'static, Returned> {
            Box::pin(async move {
                {
                    let (now, most) = &mut *self.0.lock().unwrap();
                    *now += 1;
                    *most = (*most).max(*now);
                }
                tokio::time::sleep(10 * MS).await;
                self.0.lock().unwrap().0 -= 1;
                Returned::Decided(Decision::Ack)
            })
        }

        fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
            RetryDelay::BySettings
        }
    }

    struct Fixture {
        listener: Arc<Takes10Ms>,
        tasks: Arc<Tasks>,
        events: mpsc::UnboundedReceiver<RunEvent>,
    }

    impl Fixture {
        fn new() -> Self {
            let (report, events) = mpsc::unbounded_channel();
            let listener = Arc::<Takes10Ms>::default();
            let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
            let tasks = Tasks { listener: listener.clone(), environment, lease: Arc::default(), events: report };
            Self { listener, tasks: Arc::new(tasks), events }
        }

        fn runs(&self, count: usize) -> Vec<PreparedRun> {
            (0..count).map(|_| self.run()).collect()
        }

        fn run(&self) -> PreparedRun {
            let entry = self.tasks.environment.process().enter(Duration::ZERO).unwrap();
            let task = RunTask::new(self.tasks.clone(), RunId::default(), Arc::default(), entry, false);
            PreparedRun::of_a_test(task)
        }

        /// How many runs have ended since the last call.
        fn ended(&mut self, wanted: impl Fn(&Ended) -> bool) -> usize {
            std::iter::from_fn(|| self.events.try_recv().ok())
                .filter(|event| matches!(event, RunEvent::Ended(_, ended) if wanted(ended)))
                .count()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_runner_goes_on_with_what_waits_and_no_more_run_than_may() {
        let mut fixture = Fixture::new();
        let runners = Runners::new(fixture.tasks.environment.clone());
        for _ in 0..2 {
            let started = runners.hand_over(&mut fixture.runs(10), 3);
            assert_eq!((started.len(), runners.queued()), (3, 10));
            started.into_iter().for_each(|runner| drop(tokio::spawn(runner)));
            tokio::time::sleep(5 * MS).await;
            assert_eq!((runners.room_since(), runners.queued()), (None, 7));
            assert_eq!(runners.hand_over(&mut fixture.runs(2), 3).len(), 0, "there are as many as may run");
            tokio::time::sleep(40 * MS).await;
            assert_eq!(fixture.ended(|ended| matches!(ended, Ended::Returned(_))), 12);
            let since = runners.room_since().map(|since| fixture.tasks.environment.now() - since);
            assert_eq!(
                (runners.queued(), since),
                (0, Some(5 * MS)),
                "the last of four times three ended 40 ms after the first began"
            );
        }
        assert_eq!(*fixture.listener.0.lock().unwrap(), (0, 3));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn another_thread_takes_a_runner_that_rests_where_a_handler_blocks() {
        let rested = tokio::spawn(async {
            let (tell, told) = std::sync::mpsc::channel();
            // It runs next on this thread, and blocks it until the rest is over.
            let handler = tokio::spawn(async move { told.recv_timeout(Duration::from_secs(20)).is_ok() });
            back_of_the_queue().await;
            let _ = tell.send(()); // it fails if the handler has given up
            handler.await.unwrap()
        });
        assert!(rested.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_ends_with_the_runtime_of_the_runners() {
        let mut fixture = Fixture::new();
        let runners = Runners::new(fixture.tasks.environment.clone());
        drop(runners.hand_over(&mut fixture.runs(5), 2));
        assert_eq!(fixture.ended(|ended| matches!(ended, Ended::Dropped)), 5);
        assert_eq!(runners.queued(), 0);
    }
}

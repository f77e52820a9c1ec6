//! The task of a run, on the user's runtime. All code of the user's runs in it: the handler and, after a failure, `retry_delay`.
//!
//! The task reports to the topic at its end, and once before it asks `retry_delay`, which may block its thread. A job that a batch
//! decides is reported at once, so the end of its task concerns only the others. [`BatchReport`] knows which these are, because the
//! batch may outlive the handler and decide from another task.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tracing::{Instrument, Span};

use super::{Ended, Failed, RunEvent, Tasks, drop_here, failure_of, text, wanted_retry};
use crate::context::topic::slab::RunId;
use crate::environment::ProcessEntry;
use crate::job::Record;
use crate::listener::{Delivered, ErasedBatches, Failure, Outcomes, RunControl, UnackedDecision};
use crate::listener::{HandlerCall, Returned};
use crate::telemetry;

/// The task of a run. It reports its end in any case, also if it is dropped.
pub(crate) struct RunTask {
    tasks: Arc<Tasks>,
    run: RunId,
    control: Arc<RunControl>,
    /// Its process counts it among the running handlers until it ends.
    entry: Option<ProcessEntry>,
    /// Its job is held, so its handler must not start without a valid lease.
    needs_lease: bool,
    ended: Ended,
}

impl RunTask {
    pub(crate) const fn new(
        tasks: Arc<Tasks>,
        run: RunId,
        control: Arc<RunControl>,
        entry: ProcessEntry,
        needs_lease: bool,
    ) -> Self {
        Self { tasks, run, control, entry: Some(entry), needs_lease, ended: Ended::Dropped }
    }

    /// Runs the handler, unless the run was taken back. If the handler fails, asks `retry_delay` for each job that has no outcome and whose
    /// number of failed runs is known. Dropping what this returns reports how the run ended; `None`: it was given up, and that is reported.
    async fn run(mut self, work: Work) -> Option<Self> {
        if !self.begins() {
            return Some(self);
        }
        let (name, is_swept, batch, failed) = match &work {
            Work::One { call, failed, .. } => (name(call), *call == HandlerCall::OnParkTimeout, None, *failed),
            Work::Batch { report, .. } => ("the handler", false, Some(report.clone()), None),
        };
        let listener = Arc::clone(&self.tasks.listener);
        let handler = catch_unwind(AssertUnwindSafe(|| match work {
            Work::One { call, record, delivery, .. } => listener.call(call, record, delivery),
            Work::Batch { listener, jobs, report } => listener.call_batch(jobs, report, self.control.clone()),
        }));
        let returned = match handler {
            Ok(handler) => self.control.until_given_up(AssertUnwindSafe(handler).catch_unwind()).await,
            Err(panic) => Some(Err(panic)),
        };
        self.ended = match returned {
            Some(Ok(returned)) => Ended::Returned(returned),
            Some(Err(panic)) => Ended::Panicked(format!("{name} panicked: {}", text(panic))),
            None => {
                telemetry::mark_failed("given up: it took too long, or its job was lost");
                return None;
            }
        };
        if let Some(cause) = self.ended.cause() {
            telemetry::mark_failed(cause.as_str()); // the cause alone, because an error may quote the payload
        }
        let left = batch.as_ref().map(|report| report.close());
        if (failed.is_some() || left.as_ref().is_some_and(|left| !left.is_empty()))
            && !self.control.is_given_up()
            && let Some(failure) = self.failed(is_swept)
        {
            self.ask(failure, |task, failure| match (failed, left) {
                (Some(failed), _) => Ended::Asked(task.tasks.retry_delay(failed, failure)),
                (None, left) => task.ask_each(left.unwrap_or_default(), failure),
            });
        }
        drop_here(self.ended.take_error());
        Some(self)
    }

    /// Only asks `retry_delay` for jobs by their places, in place of a task that is gone or blocked.
    pub(crate) async fn ask_only(mut self, jobs: Vec<(usize, u32)>, failure: Failure) {
        if self.begins() {
            self.ended = self.ask_each(jobs, &failure);
        }
    }

    fn ask_each(&self, jobs: Vec<(usize, u32)>, failure: &Failure) -> Ended {
        let ask = |(place, failed)| (place, self.tasks.retry_delay(failed, failure));
        Ended::AskedEach(jobs.into_iter().map(ask).collect())
    }

    /// Whether the run begins: it was not taken back before, and the lease is still valid, if it needs one (rule 21).
    fn begins(&mut self) -> bool {
        let now = self.tasks.environment.now();
        let begins = (!self.needs_lease || now < self.tasks.lease.get()) && self.control.begin(now);
        if !begins {
            self.ended = Ended::TakenBack;
        } else if let Some(entry) = &self.entry {
            entry.begins(now);
        }
        begins
    }

    /// The failure for which `retry_delay` is asked.
    fn failed(&self, is_swept: bool) -> Option<Failed> {
        match &self.ended {
            Ended::Returned(Returned::Unacked(UnackedDecision::Retry)) => {
                Some(Failed { failure: wanted_retry(), is_wanted: true })
            }
            _ if is_swept => None,
            ended => Some(Failed { failure: failure_of(ended, &self.tasks.environment)?, is_wanted: false }),
        }
    }

    /// Asks `retry_delay`. The topic waits for the answer only for a while, because it may never come.
    fn ask(&mut self, mut failure: Failed, ask: impl FnOnce(&Self, &Failure) -> Ended) {
        let mut asked = failure.failure.clone();
        failure.failure.take_error(); // not the last: `asked` and what ended have it
        self.tasks.send(RunEvent::Failed(self.run, failure));
        let answer = ask(self, &asked);
        self.ended.take_error();
        drop_here(asked.take_error());
        self.ended = answer;
    }
}

impl Drop for RunTask {
    fn drop(&mut self) {
        let ended = std::mem::replace(&mut self.ended, Ended::Dropped);
        self.entry = None; // before the topic looks for a job that may start now
        self.tasks.send(RunEvent::Ended(self.run, ended));
    }
}

/// A run that waits for a runner. Dropping it reports that.
pub(crate) struct PreparedRun {
    pub(crate) task: RunTask,
    pub(crate) work: Work,
    pub(crate) span: Span,
}

/// What a run calls.
pub(crate) enum Work {
    /// A handler for one job.
    One {
        call: HandlerCall,
        record: Record,
        delivery: Delivered,
        /// How many runs have failed if this one fails, too; `None`: then `retry_delay` is not asked.
        failed: Option<u32>,
    },
    /// The handler of a batch.
    Batch {
        listener: Arc<dyn ErasedBatches>,
        /// By their places.
        jobs: Vec<(Record, Delivered)>,
        report: Arc<BatchReport>,
    },
}

impl PreparedRun {
    /// Whether the run was taken back: then it calls no handler.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.task.control.is_taken_back()
    }

    /// As [`RunTask::run`].
    pub(crate) async fn run(self) -> Option<RunTask> {
        let Self { task, work, span } = self;
        task.run(work).instrument(span).await
    }
}

/// The name of a handler, for the text of its panic.
const fn name(call: &HandlerCall) -> &'static str {
    match call {
        HandlerCall::OnDue => "the handler",
        HandlerCall::OnExhausted(_) => "`on_exhausted`",
        HandlerCall::OnParkTimeout => "`on_park_timeout`",
    }
}

/// What a batch has reported to the topic.
#[derive(Debug)]
pub(crate) struct BatchReport {
    tasks: Arc<Tasks>,
    run: RunId,
    /// The jobs by their places; `None`: it has its outcome. The number is how many runs have failed if this one fails, too; without
    /// one the listener's `retry_delay` is not asked.
    open: Mutex<Vec<Option<Option<u32>>>>,
}

impl BatchReport {
    /// A batch of so many jobs as there are numbers of failed runs.
    pub(crate) fn new(tasks: Arc<Tasks>, run: RunId, failed: Vec<Option<u32>>) -> Self {
        Self { tasks, run, open: Mutex::new(failed.into_iter().map(Some).collect()) }
    }

    /// Ends the batch. Returns the places of the jobs without an outcome for which `retry_delay` is asked after a failure, with
    /// the number of failed runs of each.
    pub(crate) fn close(&self) -> Vec<(usize, u32)> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter_mut().enumerate().filter_map(|(place, job)| Some((place, job.take()??))).collect()
    }
}

impl Outcomes for BatchReport {
    fn ended(&self, place: usize, returned: Returned) -> bool {
        let job = self.open.lock().unwrap_or_else(PoisonError::into_inner).get_mut(place).and_then(Option::take);
        let Some(failed) = job else { return false };
        let mut ended = Ended::Returned(returned);
        let asked = failed.and_then(|failed| Some((failed, failure_of(&ended, &self.tasks.environment)?)));
        let (failed, ended) = match asked {
            Some((failed, mut failure)) => {
                let delay = self.tasks.retry_delay(failed, &failure);
                ended.take_error(); // not the last: `failure` has it
                drop_here(failure.take_error());
                (Some(Failed { failure, is_wanted: false }), Ended::Asked(delay))
            }
            None => {
                drop_here(ended.take_error());
                (None, ended)
            }
        };
        self.tasks.send(RunEvent::JobEnded(self.run, place, failed, ended));
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use tokio::sync::mpsc;

    use super::super::LeaseEnd;
    use super::*;
    use crate::environment::{Environment, Outlook, Seeded};
    use crate::job::{Codec, Fence, JobId, Metadata, TopicName};
    use crate::listener::ErasedListener;
    use crate::listener::{Decision, RetryDelay};
    use crate::time::Timestamp;

    impl PreparedRun {
        /// A run of `on_due` that nobody gives up.
        pub(crate) fn of_a_test(task: RunTask) -> Self {
            let delivery = Delivered {
                topic: TopicName::new("t").unwrap(),
                id: JobId::new("a").unwrap(),
                fence: Fence(1),
                due: Timestamp::EPOCH,
                attempt: 0,
                headers: Vec::new(),
                state: None,
                is_acked: false,
                notes: None,
                run: Arc::default(),
            };
            let record = Record::new(&Metadata::default(), Codec::Json, b"{}");
            let work = Work::One { call: HandlerCall::OnDue, record, delivery, failed: None };
            Self { task, work, span: Span::none() }
        }
    }

    /// Counts its calls, and returns an ack.
    #[derive(Debug, Default)]
    struct Counts(Mutex<usize>);

    impl ErasedListener for Counts {
        fn call(self: Arc<Self>, _: HandlerCall, _: Record, _: Delivered) -> BoxFuture<'static, Returned> {
            *self.0.lock().unwrap() += 1;
            Box::pin(std::future::ready(Returned::Decided(Decision::Ack)))
        }

        fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
            RetryDelay::BySettings
        }
    }

    #[derive(Debug)]
    struct Hangs;

    impl dyn ErasedListener {
        pub(crate) fn whose_handlers_hang() -> Arc<Self> {
            Arc::new(Hangs)
        }
    }

    impl ErasedListener for Hangs {
        fn call(self: Arc<Self>, _: HandlerCall, _: Record, _: Delivered) -> BoxFuture<'static, Returned> {
            Box::pin(std::future::pending())
        }

        fn retry_delay(&self, _: u32, _: &Failure) -> RetryDelay {
            RetryDelay::BySettings
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_waited_for_a_runner_runs_for_long_only_after_its_start() {
        const LONG: Duration = Duration::from_secs(20);
        let (events, _reported) = mpsc::unbounded_channel();
        let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
        let process = environment.process().clone();
        let tasks = Tasks { listener: Arc::new(Hangs), environment, lease: Arc::default(), events };
        let entry = process.enter(LONG).unwrap();
        let task = RunTask::new(Arc::new(tasks), RunId::default(), Arc::default(), entry, false);
        tokio::time::advance(LONG * 2).await;
        let _running = tokio::spawn(PreparedRun::of_a_test(task).run());
        tokio::task::yield_now().await;
        let mut ticket = process.queue();
        assert!(matches!(ticket.outlook(LONG), Outlook::Wait(_)), "the handler has just started");
        tokio::time::advance(LONG).await;
        assert!(matches!(ticket.outlook(LONG), Outlook::Beside(_)), "it has run for too long to wait for it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_whose_lease_ended_before_its_first_poll_does_not_start() {
        let (events, mut reported) = mpsc::unbounded_channel();
        let environment = Environment::on_this_runtime(Arc::new(Seeded::new(1)));
        let listener = Arc::new(Counts::default());
        let lease = Arc::<LeaseEnd>::default(); // as of a lease that was never renewed
        let tasks = Arc::new(Tasks { listener: listener.clone(), environment, lease, events });
        for (needs_lease, calls) in [(true, 0), (false, 1)] {
            let entry = tasks.environment.process().enter(Duration::ZERO).unwrap();
            let task = RunTask::new(tasks.clone(), RunId::default(), Arc::default(), entry, needs_lease);
            drop(PreparedRun::of_a_test(task).run().await);
            assert_eq!(*listener.0.lock().unwrap(), calls);
            let RunEvent::Ended(_, ended) = reported.recv().await.unwrap() else { panic!("it did not fail") };
            assert_eq!(matches!(ended, Ended::TakenBack), needs_lease, "{ended:?}");
        }
    }
}

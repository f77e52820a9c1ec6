//! The counters and the condition of one topic on this node.
//!
//! The task of the topic keeps them up to date. `health()` reads them without a request to the store. What counts each job is atomic; the
//! rest is the answer of `health()` itself, behind one lock that is held for a copy at most.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;

pub use super::meter::Counters;
use super::meter::{Count, Counts, Level};
use super::punctuality::Punctuality;
use crate::context::condition::{Condition, LiveCondition, TaskStats};
use crate::job::{Cause, JobId};
use crate::provider::{RefusedJob, show_last};
use crate::store::RequestKind;
use crate::store::step::Change;
use crate::store::{Drain, Outage, Pause, TopicDelay, TopicLimit, TopicState};
use crate::telemetry::{Counter, Histogram, counter, histogram, label, table};

/// The state of one topic on this node.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct TopicHealth {
    /// The topic.
    pub topic: String,
    /// The listener and the place of its annotation.
    pub listener: String,
    /// The settings, as `concurrency = 64, timeout = 30s, ..`.
    pub settings: String,
    /// What the topic is doing.
    pub condition: Condition,
    /// Jobs this node holds.
    pub held: usize,
    /// Handlers that have a permit. Abandoned ones, which were given up and have not returned, are among them.
    pub running: usize,
    /// Jobs that wait for a permit.
    pub waiting: usize,
    /// Outcomes that the store has not judged yet.
    pub settling: usize,
    /// Entries that waited in the outbox of the topic when this node last relayed: follow-ups that have not arrived.
    pub follow_ups: usize,
    /// The last follow-ups that this node brought to a topic which refused them for good, oldest first. At most 16.
    pub refused_follow_ups: Vec<RefusedJob>,
    /// The jobs that may have killed their process, and how this node runs them; `None` while it holds none.
    pub quarantine: Option<Quarantine>,
    /// Where dq itself has panicked in this topic since the start of the node, which is a defect of dq: please report it. At most 16.
    pub defects: Vec<TopicDefect>,
    /// Counters since the start of the node.
    pub counters: Counters,
    /// Why the topic claims no jobs although the store works, and what to do: the runtime of the handlers did not begin one
    /// within two seconds. `None`: it begins them.
    pub starved: Option<String>,
    /// Why the topic is late: more than one in a hundred of its jobs of the last minute started later than its
    /// `lateness_objective`. `None`: they did not, or there is none.
    pub late: Option<String>,
    /// Why the topic claims nothing: somebody has paused it. `None`: nobody has, as far as this node knows.
    pub pause: Option<Pause>,
    /// Somebody drains the topic: it takes no new jobs, and nodes run only what was due by then.
    pub drain: Option<Drain>,
    /// While the topic drains: how many jobs were still waiting at the last transfer of this node that were due when it began;
    /// 10,000 stands for as many or more.
    pub left: usize,
    /// The default delay of the topic that the store keeps.
    pub default_delay: Option<TopicDelay>,
    /// Its limits that callers have [set](crate::Provider::set_limit), as far as the node knows.
    pub limits: Vec<TopicLimit>,
    /// How many more records than jobs in a state the store had at the last scan. Anything but 0 means that another program
    /// removed keys of dq, or that the server evicted them; jobs without a state are put back within about two minutes.
    pub audit_difference: i64,
}

/// Jobs that ran in processes that died. One of them may be the cause, so they run in small groups, on half of the permits at
/// most, and at last alone in the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Quarantine {
    /// How many of them wait.
    pub waiting: usize,
    /// How many of them run.
    pub running: usize,
    /// The ids of those that run, at most 16.
    pub jobs: Vec<String>,
    /// The id of the one that runs alone. Nothing else starts in this process meanwhile, in any topic.
    pub alone: Option<String>,
}

/// A place in dq at which the task of a topic panicked. The topic goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TopicDefect {
    /// The step of the task.
    pub step: String,
    /// The id of the job that the task was at, or of the first of several; `None`: it was at no job.
    pub job: Option<String>,
    /// The message of the last panic there.
    pub message: String,
    /// How often it panicked there.
    pub panics: u32,
    /// dq has given the job up: it becomes DEAD with the cause `defect`.
    pub is_given_up: bool,
}

/// The result of a stop: what became of what the node held when it was told to stop. The log has the same as one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stopped {
    /// Jobs whose run ended by itself during the stop, with an outcome that the store took: acks, retries, rejoins and so on.
    pub finished: usize,
    /// Jobs that went back as they were, without a spent attempt: those that waited, and those whose handlers were cancelled.
    pub given_back: usize,
    /// Handlers that were cancelled, because the grace ended before they did.
    pub cancelled: usize,
    /// Jobs that the node still held: the store did not answer in time, or `rollback_on_shutdown` is off. Other nodes reclaim them.
    pub left: usize,
    /// Handlers that were cancelled and have not returned, because they block their thread.
    pub still_running: usize,
}

/// What `health()` says while runs starve.
const STARVED: &str = "the runtime of the handlers did not begin a handler within two seconds: its threads are blocked or too busy. \
                       Put blocking work into `spawn_blocking`, or lower `concurrency` or `node_concurrency`";

/// The live counters of one topic, and what else its task shows.
#[derive(Debug)]
pub(crate) struct TopicStats {
    pub(in crate::context) condition: LiveCondition,
    /// What is counted.
    pub(super) count: Counts,
    held: Level,
    running: Level,
    waiting: Level,
    settling: Level,
    /// Entries that wait in the outbox.
    pub(super) follow_ups: Level,
    relay: Histogram,
    /// Jobs that `on_park_timeout` dropped.
    dropped: Count,
    run: Histogram,
    lateness: Histogram,
    failed: [Counter; 8],
    stopped: Counter,
    calls: [Histogram; RequestKind::COUNT],
    punctuality: Punctuality,
    /// What else `health()` shows, beside the above. Locked for a copy at most.
    shown: Mutex<TopicHealth>,
    /// The counters when the stop was ordered.
    at_stop: OnceLock<Counters>,
    cancelled: AtomicUsize,
}

impl TopicStats {
    pub(crate) fn new(
        topic: String,
        listener: String,
        settings: String,
        objective: Option<Duration>,
        outage: &Outage,
    ) -> Self {
        let name = label(&topic);
        Self {
            condition: LiveCondition::new(topic.clone(), outage),
            count: Counts::new(&topic),
            held: Level::of(&table::HELD, name),
            running: Level::of(&table::RUNNING, name),
            waiting: Level::of(&table::WAITING, name),
            settling: Level::of(&table::SETTLING, name),
            follow_ups: Level::of(&table::FOLLOW_UPS, name),
            relay: histogram(&table::RELAY, &[name]),
            dropped: Count::of(Some(counter(&table::SETTLED, &[name, "drop"]))),
            run: histogram(&table::RUN, &[name]),
            lateness: histogram(&table::LATENESS, &[name]),
            failed: Cause::ALL.map(|cause| counter(&table::FAILED, &[name, cause.as_str()])),
            stopped: counter(&table::FAILED, &[name, "stopped"]),
            calls: RequestKind::ALL.map(|kind| histogram(&table::CALL, &[kind.name()])),
            punctuality: Punctuality::new(objective),
            shown: Mutex::new(TopicHealth { topic, listener, settings, ..TopicHealth::default() }),
            at_stop: OnceLock::new(),
            cancelled: AtomicUsize::new(0),
        }
    }

    pub(crate) fn read(&self) -> TopicHealth {
        TopicHealth {
            condition: self.condition.read(),
            held: self.held.read(),
            running: self.running.read(),
            waiting: self.waiting.read(),
            settling: self.settling.read(),
            follow_ups: self.follow_ups.read(),
            counters: self.count.read(),
            late: self.punctuality.missed(self.condition.now()),
            ..self.shown().clone()
        }
    }

    fn shown(&self) -> MutexGuard<'_, TopicHealth> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stopping(&self) {
        self.at_stop.get_or_init(|| self.count.read());
        self.condition.set(Condition::Stopping);
    }

    /// A handler was cancelled because the grace ended.
    pub(super) fn cancelled(&self) {
        self.cancelled.fetch_add(1, Relaxed);
    }

    /// What became of what the topic held when its stop was ordered.
    pub(crate) fn ending(&self) -> Stopped {
        let (now, then) = (self.count.read(), self.at_stop.get().copied().unwrap_or_default());
        let finished = |of: &Counters| of.acked + of.rejoined + of.retried + of.parked + of.dead;
        Stopped {
            finished: finished(&now).saturating_sub(finished(&then)) as usize,
            given_back: now.rolled_back.saturating_sub(then.rolled_back) as usize,
            cancelled: self.cancelled.load(Relaxed),
            left: self.held.read(),
            still_running: self.running.read(),
        }
    }

    pub(super) fn set_current(&self, held: usize, running: usize, waiting: usize, settling: usize) {
        self.held.set(held);
        self.running.set(running);
        self.waiting.set(waiting);
        self.settling.set(settling);
    }

    /// What an answer told of the state of the topic.
    pub(super) fn set_state(&self, state: Option<Box<TopicState>>, left: Option<usize>) {
        let TopicState { pause, drain, delay, limits } = state.map_or_else(TopicState::default, |state| *state);
        let mut shown = self.shown();
        shown.left = left.unwrap_or(shown.left);
        (shown.pause, shown.drain, shown.default_delay, shown.limits) = (pause, drain, delay, limits);
    }

    pub(super) fn set_quarantine(&self, quarantine: Option<Quarantine>) {
        self.shown().quarantine = quarantine;
    }

    /// The task has panicked at this step, and at one of these jobs, and goes on.
    pub(super) fn panicked(&self, step: &str, jobs: &[JobId], panic: &str) {
        self.count_restart();
        self.condition.restarted(panic);
        self.found_defect(step, jobs, panic);
    }

    /// A panic at this step was at one of these jobs.
    pub(super) fn found_defect(&self, step: &str, jobs: &[JobId], panic: &str) {
        let (job, mut shown) = (jobs.first().map(JobId::to_string), self.shown());
        match shown.defects.iter_mut().find(|known| known.step == step && known.job == job) {
            Some(known) => {
                known.panics = known.panics.saturating_add(1);
                panic.clone_into(&mut known.message);
            }
            None => {
                let (step, message) = (step.to_owned(), panic.to_owned());
                show_last(&mut shown.defects, TopicDefect { step, job, message, panics: 1, is_given_up: false });
            }
        }
    }

    /// A job is given up, because dq panics at it.
    pub(super) fn gave_up(&self, id: &JobId) {
        let mut shown = self.shown();
        let of_job = shown.defects.iter_mut().filter(|known| known.job.as_deref() == Some(id.as_str()));
        of_job.for_each(|known| known.is_given_up = true);
    }

    pub(super) fn claimed(&self, late: Duration) {
        self.count.claimed.add(1);
        self.late(late);
    }

    /// A job could start this long after it was due.
    pub(super) fn late(&self, late: Duration) {
        self.count.most_late_ms.raise(late.as_millis() as u64);
        self.lateness.record(late.as_secs_f64());
        self.punctuality.started(late, || self.condition.now());
    }

    /// An entry of the outbox has arrived so long after its outcome, in µs.
    pub(super) fn relayed(&self, late: u64) {
        self.count.relayed.add(1);
        self.relay.record(Duration::from_micros(late).as_secs_f64());
    }

    /// A target refuses a follow-up for good.
    pub(super) fn refused_follow_up(&self, refused: RefusedJob) {
        self.count.refused_follow_ups.add(1);
        show_last(&mut self.shown().refused_follow_ups, refused);
    }

    pub(super) fn settled(&self, change: &Change) {
        let count = &self.count;
        let settled = match change.alone() {
            Change::Ack | Change::Then(..) => &count.acked,
            Change::Rejoin(_) => &count.rejoined,
            Change::Retry(_) => &count.retried,
            Change::Rollback => &count.rolled_back,
            Change::Park => &count.parked,
            Change::Dead => &count.dead,
            Change::Drop => {
                count.dropped.add(1);
                &self.dropped
            }
            Change::Tick(_) => &count.ticked,
        };
        settled.add(1);
    }

    /// A handler failed; `None`: the node or its runtime ended before it.
    pub(super) fn failed(&self, cause: Option<Cause>) {
        self.count.failed.add(1);
        cause.map_or(&self.stopped, |cause| &self.failed[cause as usize]).increment(1);
    }

    /// A handler ran for this long.
    pub(super) fn ran(&self, time: Duration) {
        self.run.record(time.as_secs_f64());
    }

    /// The store has answered a request of this kind after this time.
    pub(super) fn called(&self, kind: RequestKind, time: Duration) {
        self.calls[kind as usize].record(time.as_secs_f64());
    }

    pub(super) fn set_starved(&self, is_starved: bool) {
        self.shown().starved = is_starved.then(|| STARVED.into());
    }

    /// The store has compared its records with its places (rule 2).
    pub(super) fn audited(&self, records: usize, places: usize) {
        // An answer that another program has made up may have any numbers.
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let difference = signed(records) - signed(places);
        let before = std::mem::replace(&mut self.shown().audit_difference, difference);
        if difference != 0 && difference != before {
            tracing::warn!(
                topic = self.condition.topic,
                records,
                places,
                "the store has other jobs in its records than in its states: another program removed keys of dq, or the server evicted them; the audit puts back jobs without a state. If neither happened, please report this as a bug"
            );
        }
    }
}

impl TaskStats for TopicStats {
    fn condition(&self) -> &LiveCondition {
        &self.condition
    }

    fn count_restart(&self) {
        self.count.restarts.add(1);
    }
}

//! Adding, looking at and removing schedules, which add jobs periodically.

use std::fmt;
use std::time::Duration;

use super::add::{DraftJob, new_job};
use super::added::{AddedHow, added};
use super::call::{Call, Started, Verb};
use super::error::{CallError, Invalid};
use super::inputs::read;
use super::options::{Adds, Options};
use super::request::Request;
use super::root::Caller;
use super::sending::call_one;
use super::store_now::store_now;
use crate::job::limits::INTERVAL;
use crate::job::{JobDefaults, JobId, Record};
use crate::schedule::{Definition, JobOfTick, OnMissed, Origin, Overlap, Ticks, Times, schedule_id};
use crate::store::{Due, NewJob, OnDuplicate};
use crate::time::{Delay, IntoDelay, Timestamp, millis_ceil};

/// Adds a schedule. Made by [`Provider::add_schedule`](super::Provider::add_schedule) and
/// [`TopicProvider::add_schedule_json`](super::TopicProvider::add_schedule_json).
///
/// Say when its ticks are, with [`every`](Call::every) or `cron`. At each tick the store adds one job with the payload of the schedule,
/// exactly once, however many nodes there are. The job then runs like any other: at least once.
///
/// Resolves to a [`ScheduleAdded`].
pub struct AddSchedule {
    caller: Caller,
    name: String,
    payload: Result<Vec<u8>, serde_json::Error>,
    defaults: JobDefaults,
    options: Options,
    times: Option<Result<Times, Invalid>>,
    on_missed: OnMissed,
    overlap: Overlap,
    jitter: Option<Delay>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

/// The result of an [`AddSchedule`] that worked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleAdded {
    /// The name of the schedule.
    pub name: String,
    /// Its first tick. If an old schedule was kept, or is replaced after its tick, that has ticks of its own.
    pub first: Timestamp,
    /// What the store did.
    pub how: AddedHow,
}

impl Call<AddSchedule> {
    pub(super) fn add_schedule(
        caller: Caller,
        name: String,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> Self {
        Self::new(AddSchedule {
            caller,
            name,
            payload,
            defaults,
            options: Options::default(),
            times: None,
            on_missed: OnMissed::default(),
            overlap: Overlap::default(),
            jitter: None,
            start: None,
            end: None,
        })
    }

    /// A tick after each interval: a `Duration`, or a text such as `"15m"`; at least a second, at most ten years.
    ///
    /// The ticks are multiples of the interval since [`start_at`](Self::start_at), or since the Unix epoch without it: `"1h"` ticks at
    /// each full hour of UTC.
    pub fn every(self, interval: impl IntoDelay) -> Self {
        let every = |interval: Delay| check(read("every", interval)?).map(Times::Every);
        self.with(|verb| verb.times = Some(every(interval.into_delay())))
    }

    /// A tick at each time of a cron line, by the clock of a time zone: `.cron("0 9 * * MON-FRI", "Asia/Singapore")`.
    ///
    /// The line has five fields (minute, hour, day of the month, month, weekday), or six with seconds before them. The zone is a name of
    /// the IANA database. [`dq::schedule`](crate::schedule) says what happens where the clock of the zone skips an hour or shows it
    /// twice; for another policy, pass a [`Cron`](crate::schedule::Cron) to [`times`](Self::times).
    #[cfg(feature = "cron")]
    pub fn cron(self, line: &str, zone: &str) -> Self {
        let cron = crate::schedule::Cron::parse(line, zone);
        self.with(|verb| verb.times = Some(cron.map(Times::Cron).map_err(Invalid::Cron)))
    }

    /// Sets the ticks from a value.
    #[cfg_attr(not(feature = "cron"), expect(clippy::needless_pass_by_value, reason = "a cron line is given away"))]
    pub fn times(self, times: Times) -> Self {
        let times = match times {
            Times::Every(interval) => check(interval).map(Times::Every),
            #[cfg(feature = "cron")]
            Times::Cron(cron) => Ok(Times::Cron(cron)),
        };
        self.with(|verb| verb.times = Some(times))
    }

    /// Sets what becomes of ticks for which no node came in time. Defaults to [`OnMissed::Once`].
    pub fn on_missed(self, on_missed: OnMissed) -> Self {
        self.with(|verb| verb.on_missed = on_missed)
    }

    /// Sets what happens at a tick while the job of the last tick waits, runs or is UNACKED. Defaults to [`Overlap::Allow`].
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.with(|verb| verb.overlap = overlap)
    }

    /// Makes each job due up to this long after its tick; how long follows from its id. So many schedules of one time do not start
    /// together.
    pub fn jitter(self, most: impl IntoDelay) -> Self {
        self.with(|verb| verb.jitter = Some(most.into_delay()))
    }

    /// No tick is before this time.
    pub fn start_at(self, time: impl Into<Timestamp>) -> Self {
        self.with(|verb| verb.start = Some(time.into()))
    }

    /// No tick is after this time; behind its last tick the schedule is gone.
    pub fn end_at(self, time: impl Into<Timestamp>) -> Self {
        self.with(|verb| verb.end = Some(time.into()))
    }

    /// If a schedule of this name exists, keeps it and succeeds. Without this or [`replace_existing`](Self::replace_existing) that is an
    /// error.
    pub fn keep_existing(self) -> Self {
        self.set(|options| options.on_duplicate = OnDuplicate::Keep)
    }

    /// If a schedule of this name exists, replaces it.
    pub fn replace_existing(self) -> Self {
        self.set(|options| options.on_duplicate = OnDuplicate::Replace)
    }
}

fn check(given: Duration) -> Result<Duration, Invalid> {
    match INTERVAL.check(millis_ceil(given)) {
        Ok(()) => Ok(given),
        Err(_) => Err(Invalid::OutOfRange { field: "every", given, range: "write 1s to ten years" }),
    }
}

impl Verb for AddSchedule {
    type Output = ScheduleAdded;

    fn start(self, within: Option<Duration>) -> Result<Started<ScheduleAdded>, CallError> {
        let id = schedule_id(&self.name)?;
        let times = self.times.ok_or_else(|| Invalid::NoTicks { name: self.name.clone() })??;
        let jitter = self.jitter.map(|jitter| read("jitter", jitter)).transpose()?.unwrap_or_default();
        let ticks = Ticks { times, start: self.start, end: self.end };
        let (name, caller) = (self.name, self.caller);
        let on_duplicate = self.options.on_duplicate;
        let options = self.options.check(&self.defaults, caller.environment())?;
        let job = new_job(&caller, DraftJob::untyped(self.payload), &options)?;
        let job = job_of_tick(job)?;
        let mut definition = Definition {
            ticks,
            on_missed: self.on_missed,
            overlap: self.overlap,
            jitter,
            job,
            tick: Timestamp::EPOCH,
            last: None,
            origin: Origin::Call,
            made: false,
            pause: None,
            gap: None,
        };
        Ok(Started::work(async move {
            let now = store_now(&caller, within).await?;
            let Some(first) = definition.ticks.next_after(now) else {
                return Err(Invalid::NeverTicks { name }.into());
            };
            definition.tick = first;
            let request = Request::Add(kept(id, first, definition.to_record(0), on_duplicate));
            let (target, answer) = call_one(&caller, request, caller.root.deadline(within)).await;
            Ok(ScheduleAdded { name, first, how: added(target, answer)?.how })
        }))
    }
}

impl Adds for AddSchedule {
    type Timing = ();

    fn options(&mut self) -> &mut Options {
        &mut self.options
    }
}

/// The jobs of a schedule.
pub(super) fn job_of_tick(job: NewJob) -> Result<JobOfTick, Invalid> {
    let job = JobOfTick { record: job.record, expires_after: job.expires_after, deliver: job.deliver };
    job.check()?;
    Ok(job)
}

/// The job that keeps a schedule.
pub(super) fn kept(id: JobId, first: Timestamp, record: Record, on_duplicate: OnDuplicate) -> NewJob {
    NewJob { due: Due::At(first), on_duplicate, ..NewJob::new(id, record) }
}

/// Shows the topic and the name, never the payload.
impl fmt::Debug for AddSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddSchedule").field("topic", &self.caller).field("name", &self.name).finish_non_exhaustive()
    }
}

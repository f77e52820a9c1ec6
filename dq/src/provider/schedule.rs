//! Adding, looking at and removing schedules, which add jobs periodically.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::add::new_job;
use super::added::{Addition, added};
use super::call::Call;
use super::deferred::Deferred;
use super::inbox::Inbox;
use super::options::{Options, shared_option_methods};
use super::request::Request;
use super::root::Root;
use super::schedule_error::ScheduleError;
use crate::job::{Deliver, JobDefaults, JobId, Record, TopicName};
use crate::schedule::{Definition, JobOfTick, OnMissed, Origin, Overlap, Ticks, Times, schedule_id};
use crate::store::{Due, NewJob, OnDuplicate};
use crate::time::{Delay, IntoDelay, LONGEST_DELAY, Timestamp};

/// The shortest interval of a schedule.
pub(super) const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// A schedule that is added when this is awaited. Made by [`Provider::add_schedule`](super::Provider::add_schedule) and
/// [`TopicProvider::add_schedule_json`](super::TopicProvider::add_schedule_json).
///
/// Say when its ticks are, with [`every`](Self::every) or `cron`. At each tick the store adds one job with the payload of the schedule,
/// exactly once, however many nodes there are. The job then runs like any other: at least once.
///
/// Resolves to a [`ScheduleAdded`], or to a [`ScheduleError`].
///
/// # Cancel safety
/// Dropped before its request is sent, it adds nothing. Dropped later, it does not take the schedule back.
///
/// # Panics
/// When it is polled again after it resolved.
#[must_use = "adding does nothing until it is awaited"]
pub struct AddSchedule(Deferred<Draft, ScheduleError, Sent>);

struct Draft {
    root: Arc<Root>,
    inbox: Arc<Inbox>,
    name: String,
    payload: Vec<u8>,
    defaults: JobDefaults,
    options: Options,
    times: Option<Result<Times, ScheduleError>>,
    on_missed: OnMissed,
    overlap: Overlap,
    jitter: Option<Delay>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

struct Sent {
    call: Call,
    name: String,
    first: Timestamp,
    on_duplicate: OnDuplicate,
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
    pub how: Addition,
}

impl AddSchedule {
    pub(super) const fn bad(error: ScheduleError) -> Self {
        Self(Deferred::new(Err(error)))
    }

    pub(super) fn new(
        root: Arc<Root>,
        inbox: Arc<Inbox>,
        name: String,
        payload: Result<Vec<u8>, serde_json::Error>,
        defaults: JobDefaults,
    ) -> Self {
        let draft = match payload {
            Err(source) => {
                Err(ScheduleError::Add(super::AddError::BadPayload { topic: inbox.key.topic.clone(), source }))
            }
            Ok(payload) => Ok(Draft {
                root,
                inbox,
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
            }),
        };
        Self(Deferred::new(draft))
    }

    fn set(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Some(draft) = self.0.draft() {
            change(draft);
        }
        self
    }

    fn with(self, change: impl FnOnce(&mut Options)) -> Self {
        self.set(|draft| change(&mut draft.options))
    }

    /// A tick after each interval: a `Duration`, or a text such as `"15m"`; at least a second, at most ten years.
    ///
    /// The ticks are multiples of the interval since [`start_at`](Self::start_at), or since the Unix epoch without it: `"1h"` ticks at
    /// each full hour of UTC.
    pub fn every(self, interval: impl IntoDelay) -> Self {
        let interval = interval.into_delay();
        self.set(|draft| draft.times = Some(interval_of(interval).map(Times::Every)))
    }

    /// A tick at each time of a cron line, by the clock of a time zone: `.cron("0 9 * * MON-FRI", "Asia/Singapore")`.
    ///
    /// The line has five fields (minute, hour, day of the month, month, weekday), or six with seconds before them. The zone is a name of
    /// the IANA database. [`dq::schedule`](crate::schedule) says what happens where the clock of the zone skips an hour or shows it
    /// twice; for another policy, pass a [`Cron`](crate::schedule::Cron) to [`times`](Self::times).
    #[cfg(feature = "cron")]
    pub fn cron(self, line: &str, zone: &str) -> Self {
        let cron = crate::schedule::Cron::parse(line, zone);
        self.set(|draft| draft.times = Some(cron.map(Times::Cron).map_err(ScheduleError::Cron)))
    }

    /// Sets the ticks from a value.
    #[cfg_attr(not(feature = "cron"), expect(clippy::needless_pass_by_value, reason = "a cron line is given away"))]
    pub fn times(self, times: Times) -> Self {
        let times = match times {
            Times::Every(interval) => check(interval).map(Times::Every),
            #[cfg(feature = "cron")]
            Times::Cron(cron) => Ok(Times::Cron(cron)),
        };
        self.set(|draft| draft.times = Some(times))
    }

    /// Sets what becomes of ticks for which no node came in time. Defaults to [`OnMissed::Once`].
    pub fn on_missed(self, on_missed: OnMissed) -> Self {
        self.set(|draft| draft.on_missed = on_missed)
    }

    /// Sets what happens at a tick while the job of the last tick waits, runs or is UNACKED. Defaults to [`Overlap::Allow`].
    pub fn overlap(self, overlap: Overlap) -> Self {
        self.set(|draft| draft.overlap = overlap)
    }

    /// Makes each job due up to this long after its tick; how long follows from its id. So many schedules of one time do not start
    /// together.
    pub fn jitter(self, most: impl IntoDelay) -> Self {
        let most = most.into_delay();
        self.set(|draft| draft.jitter = Some(most))
    }

    /// No tick is before this time.
    pub fn start_at(self, time: impl Into<Timestamp>) -> Self {
        let time = time.into();
        self.set(|draft| draft.start = Some(time))
    }

    /// No tick is after this time; behind its last tick the schedule is gone.
    pub fn end_at(self, time: impl Into<Timestamp>) -> Self {
        let time = time.into();
        self.set(|draft| draft.end = Some(time))
    }

    /// If a schedule of this name exists, keeps it and succeeds. Without this or [`replace_existing`](Self::replace_existing) that is an
    /// error.
    pub fn keep_existing(self) -> Self {
        self.set(|draft| draft.options.on_duplicate = OnDuplicate::Keep)
    }

    /// If a schedule of this name exists, replaces it.
    pub fn replace_existing(self) -> Self {
        self.set(|draft| draft.options.on_duplicate = OnDuplicate::Replace)
    }

    shared_option_methods!();
}

fn interval_of(interval: Delay) -> Result<Duration, ScheduleError> {
    check(interval.duration().map_err(|source| ScheduleError::BadDelay { field: "every", source })?)
}

fn check(interval: Duration) -> Result<Duration, ScheduleError> {
    if (SHORTEST_INTERVAL..=LONGEST_DELAY).contains(&interval) {
        Ok(interval)
    } else {
        Err(ScheduleError::BadInterval { interval })
    }
}

impl Draft {
    fn send(self) -> Result<Sent, ScheduleError> {
        let id = schedule_id(&self.name)?;
        let times = self.times.ok_or_else(|| ScheduleError::NoTicks { name: self.name.clone() })??;
        let jitter = match self.jitter.map(Delay::duration).transpose() {
            Ok(jitter) => jitter.unwrap_or_default().min(LONGEST_DELAY),
            Err(source) => return Err(ScheduleError::BadDelay { field: "jitter", source }),
        };
        let ticks = Ticks { times, start: self.start, end: self.end };
        let now = self.root.environment.wall();
        let Some(first) = ticks.next_after(now) else { return Err(ScheduleError::NeverTicks { name: self.name }) };
        let on_duplicate = self.options.on_duplicate;
        let options = self.options.check(&self.defaults, &self.root.environment)?;
        let within = options.within;
        let job = new_job(&self.root, &self.inbox, None, &self.payload, &options)?;
        let definition = Definition {
            ticks,
            on_missed: self.on_missed,
            overlap: self.overlap,
            jitter,
            job: JobOfTick { record: job.record, expires_after: job.expires_after, deliver: job.deliver },
            tick: first,
            last: None,
            origin: Origin::Call,
            made: false,
            pause: None,
        };
        let new = kept(id, first, definition.to_record(0), on_duplicate);
        let call = Call::new(self.root, self.inbox, Request::Add(new), within);
        Ok(Sent { call, name: self.name, first, on_duplicate })
    }
}

/// The job that keeps a schedule.
pub(super) fn kept(id: JobId, first: Timestamp, record: Record, on_duplicate: OnDuplicate) -> NewJob {
    let (generated, expires_after, deliver) = (false, None, Deliver::Queue);
    NewJob { id, generated, due: Due::At(first), expires_after, record, on_duplicate, deliver }
}

impl Future for AddSchedule {
    type Output = Result<ScheduleAdded, ScheduleError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let sent = self.0.started(Draft::send)?;
        let answer = ready!(Pin::new(&mut sent.call).poll(cx));
        let topic: &TopicName = &sent.call.inbox.key.topic;
        let added = added(topic, sent.call.id.clone(), sent.on_duplicate, answer)?;
        Poll::Ready(Ok(ScheduleAdded { name: sent.name.clone(), first: sent.first, how: added.how }))
    }
}

/// Shows the topic and the name, never the payload.
impl fmt::Debug for AddSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("AddSchedule");
        match &self.0 {
            Deferred::Draft(Some(Ok(draft))) => f.field("topic", &draft.inbox.key.topic).field("name", &draft.name),
            Deferred::Draft(error) => f.field("error", &error.as_ref().and_then(|draft| draft.as_ref().err())),
            Deferred::Started(sent) => f.field("topic", &sent.call.inbox.key.topic).field("name", &sent.name),
        };
        f.finish_non_exhaustive()
    }
}

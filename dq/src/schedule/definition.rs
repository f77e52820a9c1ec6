//! A schedule as the store keeps it: the payload of a job with a reserved id.

use std::time::Duration;

use dq_grammar::check_schedule;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bad_schedule::InvalidSchedule;
use super::missed::OnMissed;
use super::tick::{Tick, TickJob};
use super::times::{self, Ticks, Times};
use crate::job::{Codec, Delivery, InvalidName, JobId, Metadata, Record, SCHEDULE_PREFIX};
use crate::time::{MAX_DELAY, Timestamp, in_millis, millis_ceil};

/// What the ids of the jobs of schedules begin with.
const TICK_PREFIX: &str = "dq:tick:";
/// How much later a paused schedule is due again: nothing happens then, so it need not be often.
const PAUSED_AGAIN: Duration = Duration::from_secs(3600);
/// The most jobs that one step adds for missed ticks.
const MAX_AT_ONCE: usize = 100;
/// The most bytes of jobs that one step adds for missed ticks, unless one job alone has more.
const MAX_BYTES: usize = 1 << 20;

/// What happens at a tick while the job of the last tick waits, runs or is UNACKED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The job of the tick is added. The default.
    #[default]
    Allow,
    /// No job is added.
    Skip,
}

/// The id of the job that keeps the schedule of this name.
///
/// # Errors
/// [`InvalidName`] if the name is empty, longer than 200 bytes, or has a control character.
pub fn schedule_id(name: &str) -> Result<JobId, InvalidName> {
    check_schedule(name)?;
    JobId::new(format!("{SCHEDULE_PREFIX}{name}"))
}

/// The name of the schedule that this job keeps; `None` if it is an ordinary job.
pub fn schedule_name(id: &JobId) -> Option<&str> {
    id.schedule_name()
}

/// The jobs that a schedule adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOfTick {
    /// What the store keeps of each job, without the expiry.
    #[serde(with = "in_base64")]
    pub record: Record,
    /// How long after its due time a job is still worth running.
    #[serde(serialize_with = "in_millis::optional", deserialize_with = "in_millis::read_optional")]
    pub expires_after: Option<Duration>,
    /// Where a job goes.
    pub deliver: Delivery,
}

/// Where a schedule comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A program added it at run time.
    #[default]
    Call,
    /// The code of a program defines it.
    Code {
        /// Tells its definition from others of the same name.
        fingerprint: u64,
        /// The fingerprints of the definitions that came before it, the latest first.
        superseded: Vec<u64>,
    },
}

/// A schedule is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePause {
    /// Why.
    pub reason: String,
    /// Who paused it; empty if an older version of dq wrote it.
    #[serde(default)]
    pub by: String,
}

/// A schedule, and how far it has come. Its JSON has times and periods in ms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The ticks.
    pub ticks: Ticks,
    /// What becomes of missed ticks.
    pub on_missed: OnMissed,
    /// What becomes of a tick whose predecessor is not done.
    pub overlap: Overlap,
    /// Each job is due up to this long after its tick.
    #[serde(with = "in_millis")]
    pub jitter: Duration,
    /// The jobs.
    pub job: JobOfTick,
    /// The tick for which the schedule waits.
    pub tick: Timestamp,
    /// The id of the job of the last tick that had one.
    pub last: Option<JobId>,
    /// Where it comes from.
    pub origin: Origin,
    /// A function of the program makes the payload of each tick, so the record of its jobs has none.
    pub made: bool,
    /// Whether it is paused: then its ticks are missed.
    pub pause: Option<SchedulePause>,
    /// The end of the gap whose missed ticks follow one after the other.
    pub gap: Option<Timestamp>,
}

impl Definition {
    /// What the run of the schedule `name` asks of the store at `now`, and whether ticks were missed. The schedule was due at `due`, and
    /// its record gets this version.
    ///
    /// # Errors
    /// [`InvalidName`] if the name leads to no ids: no version of dq gave the schedule that name.
    pub fn run(&self, name: &str, due: Timestamp, now: Timestamp, version: u32) -> Result<(Tick, bool), InvalidName> {
        let again = |next| Tick { next: Some(next), schedule: self.to_record(version), unless: None, jobs: Vec::new() };
        if self.is_over() {
            return Ok((Tick { next: None, ..again(now) }, false));
        }
        if self.pause.is_some() {
            let later = now.after(PAUSED_AGAIN);
            return Ok((again(self.ticks.next_after(later).unwrap_or(later)), false));
        }
        match due < self.tick {
            // The definition was changed, and the due time not yet.
            true => Ok((again(self.tick), false)),
            false => match self.gap_end(due, now) {
                Some(end) => Ok((self.catch_up(name, end, now, version)?, self.gap != Some(end))),
                None => self.fire(name, now, version),
            },
        }
    }

    fn fire(&self, name: &str, now: Timestamp, version: u32) -> Result<(Tick, bool), InvalidName> {
        let size = self.job.record.as_bytes().len().max(1);
        // Each job has a payload of its own if a function makes it.
        let most = if self.made { 1 } else { (MAX_BYTES / size).clamp(1, MAX_AT_ONCE) };
        // Behind a gap only the newest tick counts: the others passed while its jobs ran.
        let on_missed = if self.catches_up() { OnMissed::Once } else { self.on_missed };
        let fired = self.ticks.fire(self.tick, now, on_missed, most);
        let jobs: Vec<_> = fired.ticks.iter().map(|tick| self.job_at(name, *tick)).collect::<Result<_, _>>()?;
        let mut next = Self { gap: None, ..self.clone() };
        next.tick = fired.next.unwrap_or(self.tick);
        let unless =
            self.last.clone().filter(|_| self.overlap == Overlap::Skip).map(|last| (last, next.to_record(version)));
        next.last = jobs.last().map(|job| job.id.clone()).or(next.last);
        Ok((Tick { next: fired.next, schedule: next.to_record(version), unless, jobs }, fired.has_missed))
    }

    pub(super) fn job_at(&self, name: &str, tick: Timestamp) -> Result<TickJob, InvalidName> {
        let id = JobId::new(format!("{TICK_PREFIX}{name}@{tick}"))?;
        let due = tick.after(self.jitter_of(&id));
        let mut record = self.job.record.clone();
        if let (Some(after), Ok(mut metadata)) = (self.job.expires_after, record.metadata()) {
            metadata.expires_at = Some(due.after(after));
            record = record.with_metadata(&metadata);
        }
        Ok(TickJob { id, due, deliver: self.job.deliver, record })
    }

    /// The jitter of a job: all nodes compute the same, because it depends on the id alone.
    fn jitter_of(&self, id: &JobId) -> Duration {
        let most = millis_ceil(self.jitter);
        Duration::from_millis(if most == 0 { 0 } else { (hash(id.as_str().as_bytes()) >> 16) % most })
    }

    /// The record of the schedule, with this version (rule 28).
    pub fn to_record(&self, version: u32) -> Record {
        let payload = serde_json::to_vec(self).expect("a schedule has only strings and numbers");
        Record::new(&Metadata { version, ..Metadata::default() }, Codec::Json, &payload)
    }

    /// Tells this definition from others: all that a program says of it, and nothing of how far it has come. `revision` is what the
    /// program says to make it another one.
    pub fn fingerprint(&self, revision: u32) -> u64 {
        let Self { ticks: Ticks { times, start, end }, on_missed, overlap, jitter, job, made, .. } = self;
        let metadata = job.record.metadata().unwrap_or_default();
        let payload = job.record.payload().map(|(_, payload)| payload).unwrap_or_default();
        let said = [
            ("times", json!(times)),
            ("start", json!(start)),
            ("end", json!(end)),
            ("on_missed", json!(on_missed)),
            ("overlap", json!(overlap)),
            ("jitter", json!(millis_ceil(*jitter))),
            ("metadata", json!(metadata)),
            ("payload", json!(hash(payload))),
            ("expires_after", json!(job.expires_after.map(millis_ceil))),
            ("deliver", json!(job.deliver)),
            ("made", json!(made)),
            ("revision", json!(revision)),
        ];
        hash(said.map(|(name, value)| format!("{name}={value}\n")).concat().as_bytes())
    }

    /// Reads a schedule.
    ///
    /// # Errors
    /// [`InvalidSchedule`].
    pub fn read(record: &Record) -> Result<Self, InvalidSchedule> {
        match Self::parse(record)? {
            (schedule, None) => Ok(schedule),
            (_, Some(why)) => Err(InvalidSchedule::Times(why)),
        }
    }

    /// What a schedule says besides its cron line, if only that cannot be read.
    pub fn with_unread_times(record: &Record) -> Option<Self> {
        Self::parse(record).ok().filter(|(_, unread)| unread.is_some()).map(|(schedule, _)| schedule)
    }

    /// The schedule, and why its cron line cannot be read here. Then it has an interval that no schedule has.
    fn parse(record: &Record) -> Result<(Self, Option<String>), InvalidSchedule> {
        let unreadable = |bad: &dyn std::fmt::Display| InvalidSchedule::Unreadable(bad.to_string());
        let (_, payload) = record.payload().map_err(|bad| unreadable(&bad))?;
        let (schedule, unread) = match serde_json::from_slice::<Self>(payload) {
            Ok(schedule) => (schedule, None),
            Err(bad) => Self::with_other_times(payload).ok_or_else(|| unreadable(&bad))?,
        };
        schedule.check()?;
        Ok((schedule, unread))
    }

    fn with_other_times(payload: &[u8]) -> Option<(Self, Option<String>)> {
        let mut json: serde_json::Value = serde_json::from_slice(payload).ok()?;
        let times = json.get_mut("ticks")?.get_mut("times")?;
        let why = times::why_unread(times.get("cron")?)?;
        *times = json!(Times::Every(MAX_DELAY));
        Some((serde_json::from_value(json).ok()?, Some(why)))
    }
}

/// FNV-1a, by Fowler, Noll and Vo: the same in every version of every program.
fn hash(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// A record as base64.
mod in_base64 {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use crate::job::Record;

    pub(super) fn serialize<S: Serializer>(record: &Record, to: S) -> Result<S::Ok, S::Error> {
        STANDARD_NO_PAD.encode(record.as_bytes()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Record, D::Error> {
        let bytes = STANDARD_NO_PAD.decode(String::deserialize(from)?).map_err(de::Error::custom)?;
        Ok(Record::from_bytes(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hourly;
    use super::*;

    /// Its jobs may overlap, and all missed ticks add theirs.
    fn all_missed() -> Definition {
        Definition { on_missed: OnMissed::All, overlap: Overlap::Allow, ..hourly() }
    }

    #[test]
    fn a_schedule_reads_as_it_was_written() {
        let mut schedule = hourly();
        assert_eq!(Definition::read(&schedule.to_record(0)), Ok(schedule.clone()));
        schedule.ticks.start = Some(Timestamp::from_millis(5));
        schedule.last = Some(JobId::new("dq:tick:nightly@x").unwrap());
        (schedule.job.deliver, schedule.job.expires_after) = (Delivery::Both, Some(Duration::from_secs(9)));
        assert_eq!(Definition::read(&schedule.to_record(0)), Ok(schedule));
        assert!(Definition::read(&Record::from_bytes(bytes::Bytes::from_static(b"what?"))).is_err());
    }

    #[test]
    fn a_schedule_whose_jobs_are_over_a_limit_of_jobs_is_not_read() {
        let mut schedule = hourly();
        let header = |value: &str| Metadata { headers: vec![("a".into(), value.into())], ..Metadata::default() };
        let parked = |fence| Metadata { parked_by: Some(crate::job::Fence(fence)), ..Metadata::default() };
        let last = crate::job::limits::FENCE.most;
        for (metadata, is_read) in
            [(header("b"), true), (header("\u{1b}[2J"), false), (parked(last), true), (parked(last + 1), false)]
        {
            schedule.job.record = Record::new(&metadata, Codec::Json, b"{}");
            let read = Definition::read(&schedule.to_record(0));
            assert_eq!(read.is_ok(), is_read, "{read:?}");
            assert!(is_read || matches!(read, Err(InvalidSchedule::OverLimit(_))), "{read:?}");
        }
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_cron_line_is_kept_with_its_zone_and_policies() {
        use dq_grammar::{Cron, RepeatedTime, SkippedTime};
        let cron = Cron::parse("0 9 * * MON-FRI", "Asia/Singapore").unwrap();
        let cron = cron.at_skipped_times(SkippedTime::Never).at_repeated_times(RepeatedTime::Second);
        let schedule = Definition { ticks: Ticks { times: Times::Cron(cron), start: None, end: None }, ..hourly() };
        assert_eq!(Definition::read(&schedule.to_record(0)), Ok(schedule));
    }

    #[test]
    fn a_tick_adds_a_job_named_after_its_time_and_waits_for_the_next() {
        let (tick, has_missed) = hourly().fire("report", Timestamp::from_millis(7_200_004), 1).unwrap();
        assert_eq!(tick.jobs[0].id.as_str(), "dq:tick:report@1970-01-01T02:00:00.000Z");
        assert_eq!(tick.jobs[0].due, Timestamp::from_millis(7_200_000));
        assert_eq!((tick.next, tick.unless, has_missed), (Some(Timestamp::from_millis(10_800_000)), None, false));
        let next = Definition::read(&tick.schedule).unwrap();
        assert_eq!(tick.schedule.fixed().version, 1);
        let (tick, _) = next.fire("report", Timestamp::from_millis(10_800_000), 2).unwrap();
        let (last, skipped) = tick.unless.unwrap();
        assert_eq!(last.as_str(), "dq:tick:report@1970-01-01T02:00:00.000Z");
        let skipped = Definition::read(&skipped).unwrap();
        assert_eq!((skipped.last, skipped.tick), (Some(last), Timestamp::from_millis(14_400_000)));
    }

    #[test]
    fn jitter_spreads_the_jobs_and_depends_on_nothing_but_their_ids() {
        let schedule = Definition { jitter: Duration::from_secs(60), ..all_missed() };
        let delay = |(n, job): (usize, &TickJob)| job.due.since(Timestamp::from_millis((n as u64 + 2) * 3_600_000));
        let delays = |schedule: &Definition| -> Vec<Duration> {
            let (tick, _) = schedule.fire("report", Timestamp::from_millis(20 * 3_600_000), 1).unwrap();
            tick.jobs.iter().enumerate().map(delay).collect()
        };
        let first = delays(&schedule);
        assert_eq!(first, delays(&schedule));
        assert!(first.iter().all(|delay| *delay < Duration::from_secs(60)));
        assert!(
            first.iter().max() > Some(&Duration::from_secs(30)) && first.iter().min() < Some(&Duration::from_secs(30))
        );
    }

    #[test]
    fn large_jobs_of_missed_ticks_are_added_few_at_a_time() {
        let mut schedule = all_missed();
        schedule.job.record = Record::new(&Metadata::default(), Codec::Json, &vec![b'1'; 300_000]);
        let (tick, _) = schedule.fire("report", Timestamp::from_millis(50 * 3_600_000), 1).unwrap();
        assert_eq!((tick.jobs.len(), tick.next), (3, Some(Timestamp::from_millis(5 * 3_600_000))));
    }

    #[test]
    fn a_paused_schedule_adds_nothing_and_keeps_its_tick() {
        let schedule = Definition { pause: Some(SchedulePause { reason: "no".into(), by: "ann".into() }), ..hourly() };
        let (tick, _) = schedule.run("report", schedule.tick, schedule.tick, 1).unwrap();
        assert_eq!((tick.jobs.len(), tick.next), (0, Some(Timestamp::from_millis(14_400_000))));
        assert_eq!(Definition::read(&tick.schedule), Ok(schedule));
    }

    #[test]
    fn a_run_before_the_tick_of_a_changed_definition_waits_for_it() {
        let (tick, _) =
            hourly().run("report", Timestamp::from_millis(7_100_000), Timestamp::from_millis(7_100_001), 3).unwrap();
        assert_eq!((tick.jobs.len(), tick.next), (0, Some(Timestamp::from_millis(7_200_000))));
        assert_eq!(tick.schedule.fixed().version, 3);
    }

    #[test]
    fn a_fingerprint_is_that_of_what_the_program_says() {
        let schedule = hourly();
        let later = Definition {
            tick: Timestamp::from_millis(9),
            last: Some(JobId::new("x").unwrap()),
            origin: Origin::Code { fingerprint: 7, superseded: vec![8] },
            pause: Some(SchedulePause { reason: "no".into(), by: "ann".into() }),
            ..hourly()
        };
        assert_eq!(later.fingerprint(0), schedule.fingerprint(0));
        assert_eq!(Definition::read(&later.to_record(0)), Ok(later));
        let all = Definition { on_missed: OnMissed::All, ..hourly() };
        let allow = Definition { overlap: Overlap::Allow, ..hourly() };
        let jitter = Definition { jitter: Duration::from_secs(1), ..hourly() };
        assert!([all, allow, jitter].iter().all(|other| other.fingerprint(0) != schedule.fingerprint(0)));
        assert_ne!(schedule.fingerprint(1), schedule.fingerprint(0));
        // Nodes of two versions tell definitions apart by it: a field that a version adds may change it for those alone that say it.
        assert_eq!(schedule.fingerprint(0), 11_099_652_191_561_393_822);
    }

    #[test]
    fn a_name_is_bounded_and_leads_to_a_reserved_id() {
        let id = schedule_id("nightly report").unwrap();
        assert_eq!((id.as_str(), schedule_name(&id)), ("dq:schedule:nightly report", Some("nightly report")));
        assert_eq!(schedule_name(&JobId::new("nightly").unwrap()), None);
        assert!(schedule_id("").is_err() && schedule_id(&"x".repeat(201)).is_err() && schedule_id("a\nb").is_err());
    }
}

//! The schedules that a program's code defines, with `#[periodic(..)]`.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::missed::OnMissed;
use super::times::{Ticks, Times};
use super::{Overlap, schedule_id};
use crate::environment::panic_message;
use crate::job::{DelayJob, JobDefaults, to_json};
use crate::time::Timestamp;

/// A type above which `#[periodic]` stands, or that it made for a function.
pub trait HasSchedules: 'static {
    /// The schedules.
    const SCHEDULES: &'static [Periodic];
}

/// The schedules of one place in the code, for `inventory`.
#[derive(Debug, Clone, Copy)]
pub struct PeriodicSet(pub &'static [Periodic]);

inventory::collect!(PeriodicSet);

/// A payload, or why there is none.
pub type Made = Result<Vec<u8>, String>;

/// What makes the payload of a schedule.
#[derive(Debug, Clone, Copy)]
pub enum PayloadOf {
    /// `Default`, once at start: each job has the same.
    Start(fn() -> Made),
    /// A function, at each tick.
    Tick(fn() -> BoxFuture<'static, Made>),
}

/// When the ticks are.
#[derive(Debug, Clone, Copy)]
pub enum PeriodicTimes {
    /// After each interval.
    Every(Duration),
    /// By a cron line in a zone, with the letters of its policies.
    Cron(&'static str, &'static str, char, char),
}

/// A schedule as the code defines it.
#[derive(Debug, Clone, Copy)]
pub struct Periodic {
    /// Its name.
    pub name: &'static str,
    /// The file and line of the attribute.
    pub declared_at: &'static str,
    /// The topic of its jobs.
    pub topic: &'static str,
    /// What the payload says of its jobs.
    pub defaults: JobDefaults,
    /// When its ticks are.
    pub times: PeriodicTimes,
    /// What makes its payload.
    pub payload: PayloadOf,
    /// What becomes of missed ticks.
    pub on_missed: OnMissed,
    /// What becomes of a tick whose predecessor is not done.
    pub overlap: Overlap,
    /// Each job is due up to this long after its tick.
    pub jitter: Duration,
    /// No tick is before it; in ms since the Unix epoch.
    pub start: Option<u64>,
    /// No tick is after it.
    pub end: Option<u64>,
    /// Makes a definition another one that says the same.
    pub revision: u32,
}

impl Periodic {
    /// A schedule with the usual policies.
    pub const fn new<J: DelayJob>(
        name: &'static str,
        declared_at: &'static str,
        times: PeriodicTimes,
        payload: PayloadOf,
    ) -> Self {
        Self {
            name,
            declared_at,
            topic: J::TOPIC,
            defaults: J::DEFAULTS,
            times,
            payload,
            on_missed: OnMissed::Once,
            overlap: Overlap::Allow,
            jitter: Duration::ZERO,
            start: None,
            end: None,
            revision: 0,
        }
    }

    /// Its ticks.
    ///
    /// # Errors
    /// A text: the name or the times are not valid here. The zone may not exist on this system, for example.
    pub fn ticks(&self) -> Result<Ticks, String> {
        schedule_id(self.name).map_err(|bad| bad.to_string())?;
        let times = match self.times {
            PeriodicTimes::Every(interval) => Times::Every(interval),
            #[cfg(feature = "cron")]
            PeriodicTimes::Cron(line, zone, skipped, repeated) => {
                Times::Cron(dq_grammar::Cron::with_letters(line, zone, skipped, repeated)?)
            }
            #[cfg(not(feature = "cron"))]
            PeriodicTimes::Cron(..) => return Err("cron lines need the feature `cron` of dq".into()),
        };
        let at = |ms: Option<u64>| ms.map(Timestamp::from_millis);
        Ok(Ticks { times, start: at(self.start), end: at(self.end) })
    }

    /// Every schedule of the linked crates, in the order of file, line and name.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<_> = inventory::iter::<PeriodicSet>.into_iter().flat_map(|set| set.0).copied().collect();
        all.sort_by_key(|schedule| (schedule.declared_at, schedule.name));
        all
    }
}

/// The bytes of a payload.
///
/// # Errors
/// Why it has none.
pub fn encoded<T: Serialize>(payload: &T) -> Made {
    to_json(payload).map_err(|bad| format!("its payload cannot be encoded: {bad}"))
}

/// The payload that a function makes; a panic is an error.
pub fn made<T: Serialize + 'static>(make: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, Made> {
    let made = AssertUnwindSafe(async move { encoded(&make.await) }).catch_unwind();
    made.map(|made| made.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(&*panic))))).boxed()
}

//! A schedule, and its ticks as the checker calculates them (rule 30).

use std::time::Duration;

use dq::job::{JobId, Record};
use dq::schedule::{Definition, OnMissed, Overlap, Times};
use dq::time::Timestamp;

/// The most ticks of one step.
const MOST: usize = 100;

/// When a tick is late enough to be left out with `on_missed = "skip"`, in ms.
const LATE: u64 = 60_000;

/// Cron lines of a run tick every minute.
const MINUTE: u64 = 60_000;

/// A schedule.
#[derive(Debug, Clone)]
pub(super) struct Scheduled {
    /// Between two ticks, in ms. Ticks are multiples of it.
    pub(super) every: u64,
    pub(super) end: Option<u64>,
    pub(super) on_missed: OnMissed,
    pub(super) skips: bool,
    pub(super) jitter: Duration,
    /// The first tick, in ms.
    pub(super) first: u64,
    /// The tick that it waits for, in ms; `None` once it has ended.
    pub(super) tick: Option<u64>,
    /// The job of the last tick that added one.
    pub(super) last: Option<JobId>,
}

impl Scheduled {
    pub(super) fn of(record: &Record) -> Option<Self> {
        let Definition { ticks, on_missed, overlap, jitter, tick, last, .. } = Definition::read(record).ok()?;
        let every = match ticks.times {
            Times::Every(interval) => interval.as_millis() as u64,
            _ => MINUTE,
        };
        let (end, skips) = (ticks.end.map(Timestamp::as_millis), overlap == Overlap::Skip);
        let first = tick.as_millis();
        Some(Self { every, end, on_missed, skips, jitter, first, tick: Some(first), last })
    }

    fn within(&self, tick: u64) -> Option<u64> {
        Some(tick).filter(|tick| self.end.is_none_or(|end| *tick <= end))
    }

    /// The ticks that get a job at this clock, and the next one, in ms.
    pub(super) fn fire(&self, tick: u64, clock: u64) -> (Vec<u64>, Option<u64>) {
        let latest = clock.max(tick).min(self.end.unwrap_or(u64::MAX));
        let passed: Vec<u64> = (tick..=latest).step_by(self.every as usize).collect();
        let last = passed.last().copied().unwrap_or(tick);
        let ticks: Vec<u64> = match self.on_missed {
            OnMissed::All => passed.into_iter().take(MOST).collect(),
            OnMissed::Once => vec![last],
            OnMissed::Skip => Some(last).filter(|last| clock.saturating_sub(*last) <= LATE).into_iter().collect(),
        };
        let before = if self.on_missed == OnMissed::All { *ticks.last().unwrap_or(&tick) } else { last };
        let next = self.within(before + self.every);
        (ticks, next)
    }
}

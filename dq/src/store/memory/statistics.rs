//! What the topic counts of itself (rule 33): a ring of minutes.

use std::collections::BTreeMap;

use super::now::Now;
use crate::job::Cause;
use crate::store::step::{Change, Claim, Outcome};
use crate::store::{MINUTE, MOST_MINUTES, MinuteCounts};

/// The minutes of the last day, and where the current step counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Statistics {
    /// By the place in the ring.
    minutes: BTreeMap<u64, MinuteCounts>,
    /// The minute of the current step, if it is one of a link that counts.
    minute: Option<u64>,
}

impl Statistics {
    /// Begins a step; `counts` says whether it belongs to a link that counts.
    pub(super) fn begin(&mut self, now: Now, counts: bool) {
        self.minute = counts.then(|| minute_of(now));
    }

    fn present(&mut self) -> Option<&mut MinuteCounts> {
        let minute = self.minute?;
        let counts = self.minutes.entry(minute % MOST_MINUTES).or_default();
        if counts.minute != minute {
            *counts = MinuteCounts { minute, ..MinuteCounts::default() };
        }
        Some(counts)
    }

    /// Counts jobs that were claimed because they were due.
    pub(super) fn claimed(&mut self, now: Now, claims: &[Claim]) {
        let Some(counts) = (if claims.is_empty() { None } else { self.present() }) else { return };
        for claim in claims {
            let late = now.floor().as_millis().saturating_sub(claim.token.due.as_millis());
            counts.claim(late, 1);
        }
    }

    /// Counts a run that ended with this outcome, by its kind.
    pub(super) fn ran(&mut self, ended: Ended) {
        if ended == Ended::NotRun {
            return;
        }
        let Some(counts) = self.present() else { return };
        counts.ran += 1;
        counts.done += u64::from(ended == Ended::Done);
        counts.failed += u64::from(ended == Ended::Failed);
    }

    /// Counts a job that became DEAD.
    pub(super) fn died(&mut self) {
        if let Some(counts) = self.present() {
            counts.dead += 1;
        }
    }

    /// The minutes from `from` to `to` in which anything was counted, in order.
    pub(super) fn between(&self, from: u64, to: u64) -> Vec<MinuteCounts> {
        let mut minutes: Vec<_> =
            self.minutes.values().filter(|counts| (from..=to).contains(&counts.minute)).copied().collect();
        minutes.sort_by_key(|counts| counts.minute);
        minutes
    }

    /// The sum of the present minute and those before it that an overview has; `None`: nothing was counted for a day.
    pub(super) fn recent(&self, now: Now) -> Option<MinuteCounts> {
        let minute = minute_of(now);
        let day = (minute + 1).saturating_sub(MOST_MINUTES)..=minute;
        let is_kept = self.minutes.values().any(|counts| day.contains(&counts.minute));
        is_kept.then(|| MinuteCounts::recent(self.minutes.values(), now.floor()))
    }
}

/// The minute of the store's clock.
pub(super) const fn minute_of(now: Now) -> u64 {
    now.floor().as_millis() / MINUTE
}

/// How a run ended, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was acked.
    Done,
    /// Its handler failed.
    Failed,
    /// It was parked, rejoined, or was a tick of a schedule.
    Otherwise,
    /// The handler did not run.
    NotRun,
}

impl Ended {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome.change {
            Change::Ack => Self::Done,
            Change::Retry(_) => Self::Failed,
            Change::Dead => match outcome.metadata.as_ref().and_then(|metadata| metadata.cause) {
                Some(Cause::Expired) => Self::NotRun,
                _ => Self::Failed,
            },
            Change::Rejoin(_) | Change::Park | Change::Tick(_) => Self::Otherwise,
            Change::Rollback | Change::Drop => Self::NotRun,
        }
    }
}

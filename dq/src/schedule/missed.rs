//! What becomes of ticks for which no node came in time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::times::Ticks;
use crate::time::Timestamp;

/// How late a node may come for a tick that counts as kept, if the next tick has not passed by then.
pub const LATE: Duration = Duration::from_secs(60);

/// What becomes of missed ticks. A tick is missed if no node of the topic came for it within a minute, or before the next tick:
/// because all nodes were down or busy, or the topic or the schedule was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissed {
    /// Missed ticks are left out.
    Skip,
    /// One job for all ticks that were missed in one gap: that of the last of them. The default.
    #[default]
    Once,
    /// One job for each missed tick.
    All,
}

/// What a node does at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The ticks that get a job, in order.
    pub ticks: Vec<Timestamp>,
    /// The next tick; `None` if the schedule has ended.
    pub next: Option<Timestamp>,
    /// Ticks were missed.
    pub has_missed: bool,
}

impl Ticks {
    /// What to do at `tick`, the tick for which the schedule waited, when it is `now`. At most `most` ticks get a job; if more
    /// were missed, the next tick is one of those.
    pub fn fire(&self, tick: Timestamp, now: Timestamp, on_missed: OnMissed, most: usize) -> Fired {
        let following = self.next_after(tick);
        let next_has_passed = following.is_some_and(|following| following <= now);
        let is_late = now.since(tick) > LATE;
        let has_missed = next_has_passed || is_late;
        if on_missed == OnMissed::All {
            let mut ticks = vec![tick];
            let mut next = following;
            while let Some(missed) = next.filter(|next| *next <= now && ticks.len() < most) {
                ticks.push(missed);
                next = self.next_after(missed);
            }
            return Fired { ticks, next, has_missed };
        }
        let last = self.last_between(tick, now).unwrap_or(tick);
        let is_kept = on_missed == OnMissed::Once || now.since(last) <= LATE;
        let ticks = if is_kept { vec![last] } else { Vec::new() };
        Fired { ticks, next: self.next_after(now.max(tick)), has_missed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::times::Times;
    use super::*;

    const fn secs(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn every(seconds: u64) -> Ticks {
        Ticks { times: Times::Every(Duration::from_secs(seconds)), start: None, end: None }
    }

    fn fired(ticks: &[u64], next: u64, has_missed: bool) -> Fired {
        Fired { ticks: ticks.iter().copied().map(secs).collect(), next: Some(secs(next)), has_missed }
    }

    #[test]
    fn a_tick_in_time_gets_its_job_under_each_policy() {
        for policy in [OnMissed::Skip, OnMissed::Once, OnMissed::All] {
            assert_eq!(every(10).fire(secs(20), secs(20), policy, 9), fired(&[20], 30, false), "{policy:?}");
            assert_eq!(every(10).fire(secs(20), secs(29), policy, 9), fired(&[20], 30, false), "{policy:?}");
        }
    }

    #[test]
    fn a_tick_that_is_only_late_is_missed_after_a_minute() {
        let daily = every(86_400);
        assert_eq!(daily.fire(secs(86_400), secs(86_460), OnMissed::Skip, 9), fired(&[86_400], 172_800, false));
        assert_eq!(daily.fire(secs(86_400), secs(86_461), OnMissed::Skip, 9), fired(&[], 172_800, true));
        assert_eq!(daily.fire(secs(86_400), secs(86_461), OnMissed::Once, 9), fired(&[86_400], 172_800, true));
    }

    #[test]
    fn the_last_of_many_missed_ticks_is_kept_if_it_is_not_late_itself() {
        assert_eq!(every(1).fire(secs(10), secs(100), OnMissed::Skip, 9), fired(&[100], 101, true));
    }

    #[test]
    fn more_missed_ticks_than_a_step_takes_are_left_for_the_next() {
        assert_eq!(every(1).fire(secs(10), secs(100), OnMissed::All, 3), fired(&[10, 11, 12], 13, true));
    }

    #[test]
    fn behind_the_last_tick_the_schedule_has_ended() {
        let ticks = Ticks { end: Some(secs(25)), ..every(10) };
        assert_eq!(ticks.fire(secs(20), secs(20), OnMissed::Once, 9).next, None);
        assert_eq!(
            ticks.fire(secs(10), secs(90), OnMissed::Once, 9),
            Fired { ticks: vec![secs(20)], next: None, has_missed: true }
        );
    }

    #[test]
    fn a_clock_that_is_behind_the_tick_repeats_nothing() {
        assert_eq!(every(10).fire(secs(20), secs(15), OnMissed::Once, 9), fired(&[20], 30, false));
    }
}

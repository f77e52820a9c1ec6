//! Schedules whose next tick was computed while the store's clock was ahead (rule 30).

use std::time::Duration;

use super::Definition;
use crate::time::Timestamp;

/// How far the store's clock may fall back before schedules follow it. A smaller step would only make ticks come again.
pub const CLOCK_SLACK: Duration = Duration::from_secs(60);

impl Definition {
    /// The next tick from `now` on, by the store's clock, if the schedule waits for a later one, because that clock was ahead. The schedule
    /// is due at `due`: dq makes it due later than its tick only to look again soon whether a job of a gap has ended. So one that is was
    /// rescheduled by hand, and stays. So does a paused one.
    pub fn tick_from_now(&self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let waits_for = if self.gap.is_some() { due.max(self.tick) } else { self.tick };
        if self.pause.is_some() || due > waits_for || waits_for <= self.ticks.next_after(now.after(CLOCK_SLACK))? {
            return None;
        }
        self.ticks.next_after(now).map(|next| next.min(self.tick))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hourly;
    use super::super::{SchedulePause, Ticks};
    use super::*;

    const HOUR: u64 = 3_600_000;
    const NOW: Timestamp = Timestamp::from_millis(10 * HOUR + 60_000);

    const fn at(hour: u64) -> Timestamp {
        Timestamp::from_millis(hour * HOUR)
    }

    /// What becomes of a schedule that waits for the tick at this hour, and is due then.
    fn moved(definition: Definition, hour: u64) -> Option<Timestamp> {
        Definition { tick: at(hour), ..definition }.tick_from_now(at(hour), NOW)
    }

    #[test]
    fn a_tick_that_is_later_than_the_next_one_comes_back_to_it() {
        assert_eq!((moved(hourly(), 34), moved(hourly(), 12)), (Some(at(11)), Some(at(11))));
        assert_eq!((moved(hourly(), 11), moved(hourly(), 3)), (None, None), "the next tick, and a missed one");
    }

    #[test]
    fn a_small_step_of_the_clock_brings_no_tick_again() {
        let waits = Definition { tick: at(11), ..hourly() };
        let before = |ms| Timestamp::from_millis(10 * HOUR - ms);
        assert_eq!(waits.tick_from_now(at(11), before(60_000)), None);
        assert_eq!(waits.tick_from_now(at(11), before(60_001)), Some(at(10)));
    }

    #[test]
    fn a_start_that_lies_ahead_a_pause_and_another_due_time_stay() {
        let starts = Definition { ticks: Ticks { start: Some(at(34)), ..hourly().ticks }, ..hourly() };
        assert_eq!(moved(starts, 34), None);
        let pause = Some(SchedulePause { reason: "no".into(), by: "ann".into() });
        assert_eq!(moved(Definition { pause, ..hourly() }, 34), None);
        let waits = Definition { tick: at(34), ..hourly() };
        assert_eq!(waits.tick_from_now(at(35), NOW), None, "rescheduled by hand");
        let in_gap = Definition { gap: Some(at(34)), ..waits.clone() };
        assert_eq!(in_gap.tick_from_now(at(35), NOW), Some(at(11)), "it looks again soon, by a clock that was ahead");
        assert_eq!(
            waits.tick_from_now(at(12), NOW),
            Some(at(11)),
            "its due time was brought back, and its tick not yet"
        );
    }
}

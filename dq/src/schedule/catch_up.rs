//! Missed ticks of a schedule whose jobs must not overlap, and all of which count: they follow one after the other (rule 30).

use std::time::Duration;

use super::definition::{Definition, Overlap};
use super::missed::{LATE, OnMissed};
use super::tick::Tick;
use crate::job::InvalidName;
use crate::time::Timestamp;

/// How long after a missed tick the next one looks whether its job has ended.
const LOOKS_AGAIN: Duration = Duration::from_secs(1);

impl Definition {
    /// Whether its missed ticks follow one after the other.
    pub(super) fn catches_up(&self) -> bool {
        self.overlap == Overlap::Skip && self.on_missed == OnMissed::All
    }

    /// The end of the gap in which the tick was missed, for which the schedule was due at `due`: the ticks up to it follow one after the other.
    /// `None` if it was not missed, or if it passed while the jobs of a gap ran: then it is one whose predecessor has not ended.
    pub(super) fn gap_end(&self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let next_has_passed = self.ticks.next_after(self.tick).is_some_and(|next| next <= now);
        if !self.catches_up() || !(next_has_passed || now.since(self.tick) > LATE) {
            return None;
        }
        let end = self.gap.filter(|_| now.since(due) <= LATE).unwrap_or(now);
        Some(end).filter(|end| self.tick <= *end)
    }

    /// What the run of the schedule asks of the store at a missed tick: its job, unless the job of the last tick has not ended. Then the same
    /// tick is looked at again. Either way the schedule is due again soon, which is later than its tick.
    pub(super) fn catch_up(
        &self,
        name: &str,
        end: Timestamp,
        now: Timestamp,
        version: u32,
    ) -> Result<Tick, InvalidName> {
        let job = self.job_at(name, self.tick)?;
        let waiting = Self { gap: Some(end), ..self.clone() };
        let following = self.ticks.next_after(self.tick).or(self.ticks.end.map(|end| end.after(LOOKS_AGAIN)));
        let added = Self { tick: following.unwrap_or(self.tick), last: Some(job.id.clone()), ..waiting.clone() };
        Ok(Tick {
            next: following.map(|_| now.after(LOOKS_AGAIN)),
            schedule: added.to_record(version),
            unless: self.last.clone().map(|last| (last, waiting.to_record(version))),
            jobs: vec![job],
        })
    }

    /// Whether all ticks of the gap have had their jobs, and there are no others.
    pub(super) fn is_over(&self) -> bool {
        self.ticks.end.is_some_and(|end| self.tick > end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hourly;
    use super::super::{Ticks, Times};
    use super::*;
    use crate::job::JobId;

    const HOUR: u64 = 3_600_000;

    fn at(hour: u64) -> Timestamp {
        Timestamp::from_millis(hour * HOUR)
    }

    fn caught_up() -> Definition {
        Definition { on_missed: OnMissed::All, ..hourly() }
    }

    /// Runs the schedule at `now`, due at `due`; `waits`: the job of the last tick has not ended. The hours of its jobs, and what follows.
    fn run(
        schedule: &Definition,
        due: Timestamp,
        now: Timestamp,
        waits: bool,
    ) -> (Vec<u64>, Option<(Timestamp, Definition)>) {
        let (tick, _) = schedule.run("s", due, now, 1).unwrap();
        let (jobs, record) = match tick.unless.filter(|_| waits) {
            Some((_, record)) => (vec![], record),
            None => (tick.jobs.iter().map(|job| job.due.as_millis() / HOUR).collect(), tick.schedule),
        };
        (jobs, tick.next.map(|next| (next, Definition::read(&record).unwrap())))
    }

    #[test]
    fn missed_ticks_follow_one_after_the_other_and_those_that_pass_meanwhile_are_skipped() {
        let (mut schedule, mut due, mut now) = (caught_up(), at(2), at(4).after(Duration::from_secs(1)));
        let mut had = Vec::new();
        // Each job takes two and a half hours.
        for waits in [false, true, true, false, true, true, false] {
            let (jobs, next) = run(&schedule, due, now, waits);
            had.extend(jobs);
            (due, schedule) = next.unwrap();
            assert_eq!(due, now.after(LOOKS_AGAIN));
            now = if waits { due.after(Duration::from_secs(3_600 * 5 / 4)) } else { due };
            due = now;
        }
        assert_eq!(had, [2, 3, 4], "the gap ended at four");
        // It is past nine. Until the job of four ends, the others are skipped, and the next tick is one in time.
        let (jobs, next) = run(&schedule, due, now, true);
        let (next, after) = next.unwrap();
        assert_eq!((jobs, next, after.gap), (vec![], at(10), None));
        assert_eq!(run(&after, next, next, false).0, [10]);
    }

    #[test]
    fn a_tick_in_time_is_skipped_and_a_second_gap_is_one_of_its_own() {
        let schedule = Definition { last: Some(JobId::new("last").unwrap()), ..caught_up() };
        let (jobs, next) = run(&schedule, at(2), at(2), true);
        assert_eq!((jobs, next.unwrap().0), (vec![], at(3)));
        let gone = Definition { gap: Some(at(1)), ..schedule };
        assert_eq!(gone.gap_end(at(2), at(9)), Some(at(9)), "no node came for hours");
        assert_eq!(gone.gap_end(at(9), at(9)), None, "the tick passed while jobs of the gap ran");
    }

    #[test]
    fn the_last_tick_of_a_gap_has_its_job_before_the_schedule_ends() {
        let schedule = Definition { ticks: Ticks { end: Some(at(2)), ..caught_up().ticks }, ..caught_up() };
        let (jobs, next) = run(&schedule, at(2), at(5), false);
        let (due, schedule) = next.unwrap();
        assert_eq!(jobs, [2]);
        assert_eq!(run(&schedule, due, due, false), (vec![], None));
        let each = Times::Every(Duration::from_secs(1));
        assert!(
            Definition { ticks: Ticks { times: each, ..caught_up().ticks }, ..caught_up() }
                .gap_end(at(2), at(3))
                .is_some()
        );
    }
}

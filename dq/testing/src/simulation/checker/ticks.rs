//! Schedules: each tick adds its job once, or once for a gap, and no schedule is lost (rule 30).
//!
//! The checker calculates the ticks itself, from what the schedule was added with and from the clock at which its node claimed it.

use super::super::version::{is_of_tick, version};
use super::record::{Checker, Did};
use super::schedule::Scheduled;
use dq::job::{Deliver, JobId, NodeId, Record, State};
use dq::schedule::{Definition, schedule_name};
use dq::store::step::{Change, Tick, TickJob, Verdict};
use dq::testing::seam::View;
use dq::time::Timestamp;

impl Checker {
    /// A schedule was added.
    pub(super) fn note_schedule(&mut self, id: &JobId, record: &Record) {
        if schedule_name(id).is_some()
            && let Some(schedule) = Scheduled::of(record)
        {
            self.expected.schedules.insert(version(record), schedule);
        }
    }

    /// Returns whether a version is a schedule.
    pub(super) fn is_schedule(&self, version: u64) -> bool {
        self.expected.schedules.contains_key(&version)
    }

    /// The ticks of a step: records the jobs that they have added, and checks that these are the right ones.
    pub(super) fn note_ticks(&mut self, did: &Did, before: &View, after: &View, ended: &[JobId]) {
        let Did::Settle { outcomes, .. } = did else { return };
        for (outcome, verdict) in outcomes {
            if let (Change::Tick(tick), Verdict::Done) = (&outcome.change, verdict)
                && let Some(was) = before.jobs.get(&outcome.id)
            {
                self.ticks += 1;
                let old = version(&was.record);
                self.note_tick((&outcome.id, old), tick, (before, after), ended.contains(&outcome.id));
            }
        }
    }

    fn note_tick(&mut self, (id, old): (&JobId, u64), tick: &Tick, (before, after): (&View, &View), ended: bool) {
        let Some(schedule) = self.expected.schedules.get(&old).cloned() else {
            return self.bad(format!("[30] {id} ({old}) ticks, and is no schedule"));
        };
        let row = before.jobs[id].row.as_ref();
        let run = row.and_then(|row| self.expected.rows.get(&(row.node.clone(), id.clone())));
        // It may be claimed before it is due.
        let clock =
            run.map(|run| &self.runs[run]).map_or(0, |run| (run.claimed_at / 1000).max(run.token.due.as_millis()));
        let Some(due) = schedule.tick else { return self.bad(format!("[30] {id} ({old}) ticks after its end")) };
        let (ticks, next) = schedule.fire(due, clock);
        self.check_tick(id, &schedule, tick, (&ticks, next));
        let still = |last: &&JobId| {
            let state = after.jobs.get(*last).map(|job| job.state);
            matches!(state, Some(State::Delayed | State::Running | State::Unacked))
                || after.broadcasts.contains_key(*last)
        };
        let overlaps = schedule.skips && schedule.last.as_ref().filter(still).is_some();
        for job in &tick.jobs {
            self.note_job_of_tick(id, job, (before, after), ended || overlaps);
        }
        let last = tick.jobs.last().map(|job| job.id.clone()).filter(|_| !overlaps).or(schedule.last.clone());
        if let Some(is) = after.jobs.get(id).filter(|job| job.state == State::Delayed && version(&job.record) == old) {
            let written = Definition::read(&is.record).ok().map(|is| (is.tick.as_millis(), is.last));
            if written != next.map(|next| (next, last.clone())) {
                self.bad(format!("[30] {id} waits with {written:?}, not with {next:?} and {last:?}"));
            }
        }
        self.expected.schedules.insert(old, Scheduled { tick: next, last, ..schedule });
    }

    /// A tick asks for the jobs of the ticks that have passed, and for the next one.
    fn check_tick(&mut self, id: &JobId, schedule: &Scheduled, tick: &Tick, (ticks, next): (&[u64], Option<u64>)) {
        let name = schedule_name(id).unwrap_or_default();
        let fits = |(job, at): (&TickJob, &u64)| {
            let at = Timestamp::from_millis(*at);
            let late = job.due.since(at);
            job.id.as_str() == format!("dq:tick:{name}@{at}")
                && job.due >= at
                && (late.is_zero() || late < schedule.jitter)
        };
        let unless = tick.unless.as_ref().map(|(last, _)| last);
        let is_right = tick.jobs.len() == ticks.len()
            && tick.jobs.iter().zip(ticks).all(fits)
            && tick.next.map(Timestamp::as_millis) == next
            && unless == schedule.last.as_ref().filter(|_| schedule.skips);
        if !is_right {
            let jobs: Vec<_> = tick.jobs.iter().map(|job| (&job.id, job.due)).collect();
            let asked = format!("[30] {id} asks for {jobs:?}, next {:?}, unless {unless:?}", tick.next);
            self.bad(format!("{asked}; its ticks are {ticks:?}, next {next:?}: {schedule:?}"));
        }
    }

    /// A job of a tick is added once, unless it must not be.
    fn note_job_of_tick(&mut self, id: &JobId, job: &TickJob, (before, after): (&View, &View), must_not: bool) {
        let new = version(&job.record);
        let is_in = |view: &View| {
            let queued =
                view.jobs.get(&job.id).is_some_and(|job| version(&job.record) == new && job.state != State::Done);
            queued || view.broadcasts.get(&job.id).is_some_and(|(_, record)| version(record) == new)
        };
        // What another outcome of the same step has ended is not known any more.
        let of =
            |view: &View| view.jobs.get(&job.id).filter(|job| job.state != State::Done).map(|job| version(&job.record));
        let known = of(before).is_some() && of(before) == of(after) || before.broadcasts.contains_key(&job.id);
        match (is_in(after) && !is_in(before), must_not || known) {
            (true, true) => self.bad(format!("[30] {} is added by {id}, though it must not be", job.id)),
            (false, false) => {
                self.bad(format!("[30] LOST: {id} has its tick, but {} ({new}) is not there", job.id));
            }
            (true, false) if !self.expected.effected.insert(new) => {
                self.bad(format!("[30] the job {} ({new}) of a tick is added twice", job.id));
            }
            (true, false) => {
                let due = job.due.as_millis() * 1000;
                self.expected.due.insert(new, due);
                if job.deliver != Deliver::Queue {
                    self.expected.broadcasts.added(new, due, job.deliver == Deliver::Both);
                }
            }
            (false, true) => {}
        }
    }

    /// How many ticks of all schedules have passed, and how many jobs they have added.
    pub(in crate::simulation) fn ticked(&self) -> (u64, u64) {
        let passed = |schedule: &Scheduled| (schedule.tick.unwrap_or(schedule.first) - schedule.first) / schedule.every;
        let added = self.expected.effected.iter().filter(|version| is_of_tick(**version)).count();
        (self.expected.schedules.values().map(passed).sum(), added as u64)
    }

    /// The node that holds a schedule.
    pub(in crate::simulation) fn holder_of_schedule(&self) -> Option<NodeId> {
        let mut held = self.before.jobs.iter().filter(|(id, _)| schedule_name(id).is_some());
        held.find_map(|(_, job)| job.row.as_ref().map(|row| row.node.clone()))
    }

    /// The schedules that wait or have a tick.
    pub(in crate::simulation) fn schedules(&self) -> Vec<String> {
        self.before.jobs.keys().filter_map(schedule_name).map(str::to_owned).collect()
    }

    /// The schedules whose run ends in this step under an end that was promised: their ticks add nothing.
    pub(super) fn ended_schedules(&self, did: &Did, before: &View) -> Vec<JobId> {
        let Did::Settle { outcomes, .. } = did else { return Vec::new() };
        let ids = outcomes.iter().map(|(outcome, _)| &outcome.id).filter(|id| schedule_name(id).is_some());
        let ended = |id: &&JobId| before.jobs.get(*id).is_some_and(|job| self.is_promised(version(&job.record), job));
        ids.filter(ended).cloned().collect()
    }
}

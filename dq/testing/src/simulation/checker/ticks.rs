//! Schedules: each tick adds its job once, or once for a gap, and no schedule is lost (rule 30).
//!
//! A tick must be the one that the schedule in the store has at the clock at which its node claimed it.

use super::super::version::version;
use super::record::{Checker, Did};
use dq::job::{Delivery, JobId, Record, State};
use dq::schedule::{Definition, schedule_name};
use dq::store::step::{Change, Tick, TickJob, Verdict};
use dq::testing::seam::{JobView, View};
use dq::time::Timestamp;

impl Checker {
    /// The ticks of a step: records the jobs that they have added, and checks that these are the right ones.
    pub(super) fn note_ticks(&mut self, did: &Did, before: &View, after: &View) {
        let Did::Settle { outcomes, .. } = did else { return };
        for (outcome, verdict) in outcomes {
            if let (Change::Tick(tick), Verdict::Done) = (&outcome.change, verdict)
                && let Some(was) = before.jobs.get(&outcome.id)
            {
                self.ticks += 1;
                self.note_tick(&outcome.id, was, tick, (before, after));
            }
        }
    }

    fn note_tick(&mut self, id: &JobId, was: &JobView, tick: &Tick, (before, after): (&View, &View)) {
        let (Some(name), Ok(schedule)) = (schedule_name(id), Definition::read(&was.record)) else {
            return self.bad(format!("[30] {id} ticks, and is no schedule"));
        };
        let run = was.row.as_ref().and_then(|row| self.expected.rows.get(&(row.node.clone(), id.clone())));
        let Some(run) = run.map(|run| &self.runs[run]) else { return };
        let due = run.token.due;
        // It may be claimed before it is due.
        let clock = Timestamp::floor_micros(run.claimed_at).max(due);
        let Ok((wanted, _)) = schedule.run(name, due, clock, 0) else {
            return self.bad(format!("[30] {id} ticks, and its name is not valid"));
        };
        if asked(tick) != asked(&wanted) {
            self.bad(format!("[30] {id} asks for {:?}, not for {:?}", asked(tick), asked(&wanted)));
        }
        let still = |last: &JobId| {
            let state = after.jobs.get(last).map(|job| job.state);
            matches!(state, Some(State::Delayed | State::Running | State::Unacked))
                || after.broadcasts.contains_key(last)
        };
        let overlapped = tick.unless.as_ref().filter(|(last, _)| still(last));
        // The run ends under an end that was promised, so its tick adds nothing.
        let ended = self.is_promised(version(&was.record), was);
        for job in &tick.jobs {
            self.note_job_of_tick(id, job, (before, after), ended || overlapped.is_some());
        }
        let waits = |record: &Record| Definition::read(record).ok().map(|is| (is.tick, is.last));
        let next = overlapped.map_or(&tick.schedule, |(_, schedule)| schedule);
        if let Some(is) = after.jobs.get(id).filter(|is| is.state == State::Delayed && is_same(is, was))
            && waits(&is.record) != waits(next)
        {
            self.bad(format!("[30] {id} waits with {:?}, not with {:?}", waits(&is.record), waits(next)));
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
                if job.deliver != Delivery::Queue {
                    self.expected.broadcasts.added(new, due, job.deliver == Delivery::Both);
                }
            }
            (false, true) => {}
        }
    }

    /// The schedules that wait or have a tick.
    pub(in crate::simulation) fn schedules(&self) -> Vec<String> {
        self.before.jobs.keys().filter_map(schedule_name).map(str::to_owned).collect()
    }
}

/// What a tick asks of the store: its next tick, its jobs with their due times, and the job that must have ended.
fn asked(tick: &Tick) -> (Option<Timestamp>, Vec<(&JobId, Timestamp)>, Option<&JobId>) {
    let jobs = tick.jobs.iter().map(|job| (&job.id, job.due)).collect();
    (tick.next, jobs, tick.unless.as_ref().map(|(last, _)| last))
}

fn is_same(is: &JobView, was: &JobView) -> bool {
    version(&is.record) == version(&was.record)
}

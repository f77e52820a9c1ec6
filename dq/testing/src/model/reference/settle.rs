//! The step `settle`, and what every way out of RUNNING has in common (rules 10, 12, 13, 16, 17, 19 and 25).

use super::{AddedJob, End, Place, Run, Topic};
use dq::job::state::Event;
use dq::job::{JobId, Metadata, NodeId, Record, State};
use dq::store::CommandKind;
use dq::store::step::{Change, Outcome, RejoinDue, Settle, Settled, Tick, Verdict};
use dq::time::Timestamp;

impl Run {
    /// The pending end, if it is for this run.
    fn applying_end(&self, metadata: &Metadata) -> Option<End> {
        let is_own = |fence| fence == self.token.fence || Some(fence) == metadata.parked_by;
        self.end.filter(|end| end.fence.is_none_or(is_own))
    }
}

impl Topic {
    pub(in super::super) fn settle(&mut self, node: &NodeId, request: &Settle) -> Settled {
        let is_tick = |outcome: &Outcome| matches!(outcome.change, Change::Tick(_));
        let mut verdicts = vec![Verdict::Stale; request.outcomes.len()];
        for ticks in [false, true] {
            for (outcome, verdict) in request.outcomes.iter().zip(&mut verdicts) {
                if is_tick(outcome) == ticks {
                    *verdict = self.settle_one(node, outcome);
                }
            }
        }
        self.extend_lease(node, request.last_seen, request.lease);
        Settled { lease_status: self.lease_status(node), verdicts }
    }

    fn settle_one(&mut self, node: &NodeId, outcome: &Outcome) -> Verdict {
        if !self.holds(node, &outcome.id, outcome.token) {
            return Verdict::Stale;
        }
        if let (Change::Tick(tick), Some(run)) = (&outcome.change, self.run(&outcome.id).cloned())
            && run.replacement.is_some_and(|replacement| !replacement.only_if_ended)
            && !self.is_ended(&outcome.id)
        {
            self.add_jobs_of(tick);
        }
        if let Some(run) = self.obey(&outcome.id) {
            self.decide(&outcome.id, &run, &outcome.change, outcome.metadata.as_ref());
        }
        Verdict::Done
    }

    /// Obeys the pending command of a run that ends. `Some`: none applied, so the run's own outcome counts.
    pub(super) fn obey(&mut self, id: &JobId) -> Option<Run> {
        let until = self.now();
        let job = self.jobs.get_mut(id).expect("the job is RUNNING");
        let (metadata, Place::Running(run)) = (job.metadata(), job.place.clone()) else {
            unreachable!("the job is RUNNING")
        };
        let end = run.applying_end(&metadata);
        match (end, run.replacement.clone()) {
            (end, Some(replacement)) if end.is_some() || !replacement.only_if_ended => self.put(id, replacement.job),
            (Some(end), _) if end.verb == CommandKind::Ack && !metadata.retain.is_zero() => {
                job.crashes = 0;
                job.go(Event::EndedByCommand { retain: true }, Place::Done(until.after(metadata.retain)));
            }
            (Some(_), _) => drop(self.remove_job(id, Event::EndedByCommand { retain: false })),
            (None, _) => return Some(run),
        }
        None
    }

    fn decide(&mut self, id: &JobId, run: &Run, change: &Change, metadata: Option<&Metadata>) {
        let now = self.now();
        let again = |at| if at > now { RejoinDue::At(at) } else { RejoinDue::AsAdded };
        let job = self.jobs.get(id).expect("the job is RUNNING");
        let parked_by = job.metadata().parked_by;
        let delay = metadata.cloned().unwrap_or_else(|| job.metadata()).delay;
        let retain = job.metadata().retain;
        let (event, place, parked_by) = match change.clone() {
            Change::Ack if retain.is_zero() => return drop(self.remove_job(id, Event::Acked { retain: false })),
            Change::Ack => (Event::Acked { retain: true }, Place::Done(now.after(retain)), parked_by),
            Change::Drop => return drop(self.remove_job(id, Event::Dropped)),
            Change::Rejoin(when) => {
                let due = match if let RejoinDue::At(at) = when { again(at) } else { when } {
                    RejoinDue::AsAdded => self.after(delay),
                    RejoinDue::After(wait) => self.after(wait),
                    RejoinDue::At(at) => at,
                };
                (Event::Rejoined, Place::Delayed(due), None)
            }
            Change::Retry(wait) => (Event::Retried, Place::Delayed(self.after(wait)), None),
            Change::Rollback => {
                return self.give_back(id, run, metadata, Event::RolledBack { parked: parked_by.is_some() });
            }
            Change::Park => (Event::Parked, Place::Unacked(now), parked_by.or(Some(run.token.fence))),
            Change::Dead => (Event::Died, Place::Dead(now), None),
            Change::Tick(tick) => return self.tick(id, run, &tick),
        };
        let job = self.jobs.get_mut(id).expect("the job is RUNNING");
        job.write(metadata, parked_by);
        job.crashes = 0;
        job.go(event, place);
    }

    /// Adds the jobs of a tick, unless the last one has not ended. Returns the record of the schedule.
    fn add_jobs_of<'a>(&mut self, tick: &'a Tick) -> &'a Record {
        let unended = [State::Delayed, State::Running, State::Unacked];
        let has_not_ended = |last: &JobId| self.state(last).is_some_and(|last| unended.contains(&last));
        if let Some((_, skipped)) = tick.unless.as_ref().filter(|(last, _)| has_not_ended(last)) {
            return skipped;
        }
        for job in &tick.jobs {
            if matches!(self.state(&job.id), None | Some(State::Done)) {
                self.put(&job.id, AddedJob { record: job.record.clone(), due: job.due, deliver: job.deliver });
            }
        }
        &tick.schedule
    }

    /// Whether an end from outside applies to the run of this job.
    fn is_ended(&self, id: &JobId) -> bool {
        let job = self.jobs.get(id);
        job.is_some_and(|job| matches!(&job.place, Place::Running(run) if run.applying_end(&job.metadata()).is_some()))
    }

    /// Adds the jobs of a tick, and the schedule waits for the next one.
    fn tick(&mut self, id: &JobId, run: &Run, tick: &Tick) {
        let schedule = self.add_jobs_of(tick);
        let Some(next) = tick.next else { return drop(self.remove_job(id, Event::Ticked { ended: true })) };
        let later = Timestamp::from_millis(run.token.due.as_millis() + 1);
        let job = self.jobs.get_mut(id).expect("the job is RUNNING");
        (job.record, job.crashes) = (schedule.clone(), 0);
        job.go(Event::Ticked { ended: false }, Place::Delayed(next.max(later)));
    }

    /// Puts the job back in the place that it was claimed from, at its old time, with its crashes.
    pub(super) fn give_back(&mut self, id: &JobId, run: &Run, metadata: Option<&Metadata>, event: Event) {
        let job = self.jobs.get_mut(id).expect("the job is RUNNING");
        let parked_by = job.metadata().parked_by;
        job.write(metadata, parked_by);
        let at = run.token.due;
        let back = if parked_by.is_some() { Place::Unacked(at) } else { Place::Delayed(at) };
        debug_assert!(matches!(back.state(), State::Unacked | State::Delayed));
        job.go(event, back);
    }
}

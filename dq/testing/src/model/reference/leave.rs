//! Leaving RUNNING by an outcome (rules 10, 12, 13, 16, 17, 19 and 25), and what every way out has in common.

use super::{Place, Run, Topic};
use dq::job::state::Event;
use dq::job::{JobId, Metadata, NodeId, State};
use dq::store::CommandKind;
use dq::store::step::{Change, Outcome, RejoinDue, Settle, Settled, Verdict};

impl Topic {
    pub(in super::super) fn settle(&mut self, node: &NodeId, request: &Settle) -> Settled {
        let verdicts = request.outcomes.iter().map(|outcome| self.settle_one(node, outcome)).collect();
        self.extend_lease(node, request.last_seen, request.lease);
        Settled { lease_status: self.lease_status(node), verdicts }
    }

    fn settle_one(&mut self, node: &NodeId, outcome: &Outcome) -> Verdict {
        if !self.holds(node, &outcome.id, outcome.token) {
            return Verdict::Stale;
        }
        if let Some(run) = self.obey(&outcome.id) {
            self.decide(&outcome.id, &run, &outcome.change, outcome.metadata.as_ref());
        }
        Verdict::Done
    }

    /// The end of a run under what waits for it. `Some`: nothing applied, and the run itself decides.
    pub(super) fn obey(&mut self, id: &JobId) -> Option<Run> {
        let until = self.now();
        let job = self.jobs.get_mut(id).expect("it is RUNNING");
        let (metadata, Place::Running(run)) = (job.metadata(), job.place.clone()) else {
            unreachable!("it is RUNNING")
        };
        let mine = |fence| fence == run.token.fence || Some(fence) == metadata.parked_by;
        let end = run.end.filter(|end| end.fence.is_none_or(mine));
        match (end, run.replacement.clone()) {
            (end, Some(replacement)) if end.is_some() || !replacement.only_if_ended => self.put(id, replacement.new),
            (Some(end), _) if end.verb == CommandKind::Ack && !metadata.retain.is_zero() => {
                job.crashes = 0;
                job.go(Event::EndedByCommand { retain: true }, Place::Done(until.after(metadata.retain)));
            }
            (Some(_), _) => drop(self.gone(id, Event::EndedByCommand { retain: false })),
            (None, _) => return Some(run),
        }
        None
    }

    fn decide(&mut self, id: &JobId, run: &Run, change: &Change, metadata: Option<&Metadata>) {
        let now = self.now();
        let again = |at| if at > now { RejoinDue::At(at) } else { RejoinDue::AsAdded };
        let job = self.jobs.get(id).expect("it is RUNNING");
        let parked_by = job.metadata().parked_by;
        let delay = metadata.cloned().unwrap_or_else(|| job.metadata()).delay;
        let retain = job.metadata().retain;
        let (event, place, parked_by) = match *change {
            Change::Ack if retain.is_zero() => return drop(self.gone(id, Event::Acked { retain: false })),
            Change::Ack => (Event::Acked { retain: true }, Place::Done(now.after(retain)), parked_by),
            Change::Drop => return drop(self.gone(id, Event::Dropped)),
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
        };
        let job = self.jobs.get_mut(id).expect("it is RUNNING");
        job.write(metadata, parked_by);
        job.crashes = 0;
        job.go(event, place);
    }

    /// Back where it was claimed from, at its old time, with its crashes.
    pub(super) fn give_back(&mut self, id: &JobId, run: &Run, metadata: Option<&Metadata>, event: Event) {
        let job = self.jobs.get_mut(id).expect("it is RUNNING");
        let parked_by = job.metadata().parked_by;
        job.write(metadata, parked_by);
        let at = run.token.due;
        let back = if parked_by.is_some() { Place::Unacked(at) } else { Place::Delayed(at) };
        debug_assert!(matches!(back.state(), State::Unacked | State::Delayed));
        job.go(event, back);
    }
}

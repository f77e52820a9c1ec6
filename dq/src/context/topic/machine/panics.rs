//! What the machine does when the task of its topic has panicked: it charges the panic to what it was at, and goes on from what it
//! holds, as after a lost link (rule 34).

use std::time::Duration;

use super::{Machine, TakingIn};
use crate::context::topic::defects::DefectPlace;
use crate::context::topic::flight::CLAIMS;
use crate::context::topic::stage::Stage;
use crate::job::JobId;
use crate::store::RequestKind;

/// A claim at whose answer the task panicked. The next reconcile tells of which jobs the answer was.
#[derive(Debug)]
pub(super) struct LostClaim {
    panic: String,
    /// What the store counts for this node since, and the node does not hold.
    pub(super) unheld: Vec<JobId>,
}

impl Machine {
    /// The task has panicked. `reading`: it was reading the answer to the `renew`, or that to the oldest request. Returns whether the
    /// panic is explained: some job is accused.
    pub(crate) fn on_panic(&mut self, panic: &str, reading: Option<bool>, now: Duration) -> bool {
        self.moment.now = now;
        let (step, jobs, kind) = self.was_at(reading);
        self.claimed = None;
        self.runs.recover();
        self.moment.held.recover(|run_id| self.runs.table().has(run_id));
        self.moment.flight.disconnect(now);
        self.lease.lost_link();
        self.lease.send_again(None);
        self.claims.send_again(None);
        self.outcomes.send_again(None);
        self.parts.stats.panicked(step, &jobs, panic);
        self.report(step, &jobs, panic);
        let is_claim = jobs.is_empty() && kind.is_some_and(|kind| CLAIMS.contains(&kind));
        if is_claim {
            self.moment.flight.ask_one_by_one(RequestKind::Transfer);
            self.lost_claim = Some(LostClaim { panic: panic.to_owned(), unheld: Vec::new() });
        }
        match (&jobs[..], kind) {
            ([id], _) => self.charge(id, step, panic),
            ([], kind) => {
                let until = self.moment.held.defects.rest(step, now, &self.parts.environment);
                if let Some(kind) = kind {
                    self.moment.flight.pause_until(kind, until);
                }
            }
            _ => self.moment.held.defects.accuse(jobs.iter().cloned(), now),
        }
        is_claim || !jobs.is_empty()
    }

    /// The step at which the task was, the jobs that it was about, and the kind of the request.
    fn was_at(&mut self, reading: Option<bool>) -> (&'static str, Vec<JobId>, Option<RequestKind>) {
        let DefectPlace { step, job } = self.moment.held.defects.take_place();
        let (flight, taking_in) = (&mut self.moment.flight, std::mem::take(&mut self.taking_in));
        let asked = match reading {
            Some(is_renewal) => flight.take_answered(is_renewal),
            None => flight.take_asked(),
        };
        if let Some(asked) = asked {
            let jobs = asked.subject.into_jobs(|id| Some(self.moment.held.get(id)?.id.clone()));
            return (asked.kind.name(), jobs, Some(asked.kind));
        }
        match taking_in {
            TakingIn::Answer(kind) => (step, job.into_iter().collect(), Some(kind)),
            TakingIn::Run(run_id) => {
                let jobs = self.moment.held.jobs_of(run_id);
                self.runs.lose(run_id); // what it has reported is lost
                (step, job.map_or(jobs, |job| vec![job]), None)
            }
            TakingIn::Nothing => (step, job.into_iter().collect(), None),
        }
    }

    fn report(&mut self, step: &'static str, jobs: &[JobId], panic: &str) {
        let (topic, job, jobs) = (&self.parts.key.topic, jobs.first().map(tracing::field::display), jobs.len());
        if self.panicked.is_due(self.moment.now) {
            tracing::error!(%topic, step, job.id = job, jobs, panic, "dq panicked in this topic and continues; please report this as a bug");
        } else {
            tracing::debug!(%topic, step, job.id = job, jobs, panic, "dq panicked in this topic again");
        }
    }

    /// A panic is charged to this job.
    fn charge(&mut self, id: &JobId, step: &'static str, panic: &str) {
        let Self { moment, runs, parts, .. } = self;
        let rests_until = moment.held.defects.charge(id, step, panic, moment.now, &parts.environment);
        if rests_until.is_none() {
            parts.stats.gave_up(id);
        }
        let Some(held) = moment.held.find(id) else { return }; // it is judged when the node hears of it again
        let Some(job) = moment.held.get(held) else { return };
        let is_decided = matches!(job.stage, Stage::Exhausting | Stage::Settling { .. });
        let known = job.metadata.clone();
        if let Some(metadata) = moment.held.defects.sentence(id, || known) {
            runs.take_away(held, &mut moment.held);
            moment.held.sentence(held, metadata);
        } else if !is_decided {
            runs.take_away(held, &mut moment.held);
            moment.held.roll_back(held);
        }
        if let Some(until) = rests_until {
            moment.held.rest(held, until);
        }
    }

    /// The node and the store agree again. If the task has panicked at the answer of a claim, the jobs of that answer are known now.
    pub(super) fn charge_lost_claim(&mut self) {
        if !self.lease.agrees() {
            return;
        }
        let Some(LostClaim { panic, unheld }) = self.lost_claim.take() else { return };
        match &unheld[..] {
            [id] => {
                let step = RequestKind::Transfer.name();
                self.parts.stats.found_defect(step, &unheld, &panic);
                self.charge(id, step, &panic);
            }
            _ => self.moment.held.defects.accuse(unheld, self.moment.now),
        }
    }

    /// Whether the store has done anything for this topic since the last call, other than to compare.
    pub(crate) const fn has_progressed(&mut self) -> bool {
        std::mem::replace(&mut self.progressed, false)
    }
}

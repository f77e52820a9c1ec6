//! Outcomes that the store accepted: each must be the outcome of the run that holds the job (rule 10).

use super::super::rules::without;
use super::super::version::version;
use super::record::{Checker, End, HandlerKind, Run};
use dq::job::{Cause, NodeId};
use dq::schedule::schedule_name;
use dq::store::step::{Change, Outcome};
use dq::testing::seam::JobView;

impl Checker {
    /// Checks that an accepted outcome is that of the run that holds the job.
    pub(super) fn note_outcome(&mut self, node: &NodeId, outcome: &Outcome, job: Option<&JobView>) {
        let Some(number) = self.expected.rows.get(&(node.clone(), outcome.id.clone())).copied() else {
            return self
                .bad(format!("[10] an outcome of {} is accepted from {node}, which does not hold it", outcome.id));
        };
        let run = self.runs[&number].clone();
        let holds = job.map(|job| version(&job.record)).unwrap_or_default();
        if holds != run.version {
            self.bad(format!("[13] an outcome of a run of {} settles {holds} ({})", run.version, outcome.id));
        }
        let exhausted = job.is_some_and(|job| job.record.fixed().exhausted);
        // If its clock jumped back and it fell back, a store may give a token out again (rule 9), and then takes a late
        // outcome of the older run for that of the newer.
        let mut runs = self.runs.values().filter(|other| {
            self.fell && self.jumped && (&other.node, other.token, other.version) == (node, run.token, run.version)
        });
        if outcome.change == Change::Dead && cause_of(outcome) == Some(Cause::Defect) {
            return self.note_defect(node, outcome);
        }
        if !self.fits(&run, outcome, exhausted) && !runs.any(|other| self.fits(other, outcome, exhausted)) {
            self.bad(format!(
                "[10] {:?} of {} is accepted for run {number} of {}, which had {:?} and {:?}, {:?}",
                outcome.change, outcome.id, run.version, run.started, run.ended, run.decided
            ));
        }
        if !was_polled(&run, outcome) {
            self.bad(format!(
                "[14] {:?} of {} is accepted for run {number} of {}, but of {:?} only {:?} was polled",
                outcome.change, outcome.id, run.version, run.started, run.polled
            ));
        }
        if *outcome.change.alone() == Change::Ack {
            self.note_ack(number);
        }
        if let Some(run) = self.runs.get_mut(&number).filter(|_| outcome.change == Change::Rollback) {
            run.given_back = true;
        }
        if !matches!(outcome.change.alone(), Change::Rollback | Change::Dead) {
            self.forgets_crashes(run.version);
        }
    }

    /// A job is DEAD because dq has panicked at it, which takes two panics (rule 34).
    fn note_defect(&mut self, node: &NodeId, outcome: &Outcome) {
        let panics = self.panics_of(node);
        if panics < 2 {
            self.bad(format!("[34] {} is DEAD by a defect, but {node} has panicked {panics} times", outcome.id));
        }
    }

    /// How often the tasks of a node have panicked.
    pub(in crate::simulation) fn panics_of(&self, node: &NodeId) -> u32 {
        self.node_records.get(node).map_or(0, |record| record.panics)
    }

    /// Returns whether an outcome fits what the handlers of the run did.
    fn fits(&self, run: &Run, outcome: &Outcome, exhausted: bool) -> bool {
        let is = |end: End| run.ended.contains(&end);
        let is_it = match outcome.change.alone() {
            Change::Ack | Change::Then(..) => is(End::Acked) || self.acks_on_claim,
            // The end of a handler decides nothing if its job was acked on claim.
            Change::Rejoin(_) | Change::Park | Change::Retry(_) if self.acks_on_claim => false,
            Change::Rejoin(_) => is(End::Rejoined),
            Change::Park => {
                if run.aged {
                    !run.started.is_empty()
                } else {
                    is(End::Parked)
                }
            }
            Change::Retry(_) => run.started.iter().any(|kind| *kind != HandlerKind::Final),
            Change::Drop => run.aged && !run.started.is_empty(),
            Change::Rollback => true,
            Change::Tick(_) => schedule_name(&outcome.id).is_some() && outcome.token == run.token,
            Change::Dead => {
                let cause = cause_of(outcome);
                let without_final = cause == Some(Cause::Decode) || cause == Some(Cause::Expired) && run.expired;
                without_final || run.started.contains(&HandlerKind::Final) || exhausted && without("15")
            }
        };
        let is_another = run.decided.as_ref().is_some_and(|decided| decided != outcome.change.alone());
        // A row that came back when the store fell back is rolled back, whatever its run had decided.
        let is_lost = outcome.change == Change::Rollback && (run.over || self.fell);
        is_it && (!is_another || is_lost)
    }

    /// Records what a handler decided. After its timeout, or after an ack on claim, a handler decides nothing.
    pub(in crate::simulation) fn decided(&mut self, node: &NodeId, number: u64, change: Change, time: u64) {
        let started = self.node_records.get(node).and_then(|record| record.handlers.get(&number));
        let in_time = started.is_some_and(|(_, started)| time < started + self.timeout_micros) && !self.acks_on_claim;
        if let Some(run) = self.runs.get_mut(&number).filter(|_| in_time) {
            run.decided = Some(change);
        }
    }
}

/// What a job is DEAD by.
fn cause_of(outcome: &Outcome) -> Option<Cause> {
    outcome.metadata.as_ref()?.cause
}

/// Returns whether the handler was polled whose failure this outcome tells: a retry costs an attempt, and a job without
/// attempts is DEAD only after its `on_exhausted`.
fn was_polled(run: &Run, outcome: &Outcome) -> bool {
    match outcome.change {
        Change::Retry(_) => run.polled.iter().any(|kind| *kind != HandlerKind::Final),
        Change::Dead => {
            matches!(cause_of(outcome), Some(Cause::Decode | Cause::Expired))
                || run.polled.contains(&HandlerKind::Final)
        }
        _ => true,
    }
}

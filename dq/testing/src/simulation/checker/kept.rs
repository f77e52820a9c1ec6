//! What a run leaves: its state, which the next claim brings, the one that was left last by an outcome or a checkpoint; and its result, with
//! which the job stays DONE.

use super::super::version::version;
use super::record::Checker;
use dq::job::{JobId, KeptState, NodeId, State, Token};
use dq::store::step::{Change, Outcome};
use dq::testing::seam::JobView;

impl Checker {
    /// A run has saved its state; `job` is as it was before.
    pub(super) fn note_state(&mut self, id: &JobId, token: Token, state: Option<KeptState>, job: Option<&JobView>) {
        let Some(job) = job else { return };
        if job.row.as_ref().is_none_or(|row| row.token != token) {
            self.bad(format!("[10] a checkpoint of {id} under {token} is accepted, though its row is {:?}", job.row));
        }
        self.expected.states.insert(version(&job.record), state);
    }

    /// Whether a checkpoint comes before any later one of its run.
    pub(super) fn is_next_note(&mut self, id: &JobId, token: Token, number: u64) -> bool {
        let last = self.expected.notes.entry((id.clone(), token)).or_default();
        let is_next = number > *last;
        *last = number.max(*last);
        is_next
    }

    /// An outcome has brought its state, if it has one.
    pub(super) fn note_state_of(&mut self, outcome: &Outcome, job: Option<&JobView>) {
        let keeps = matches!(outcome.change, Change::Rejoin(_) | Change::Retry(_) | Change::Park | Change::Dead);
        if let (Some(metadata), Some(job)) = (outcome.metadata.as_ref().filter(|_| keeps), job) {
            self.expected.states.insert(version(&job.record), metadata.state.clone());
        }
    }

    /// An ack has brought a result. A pending command goes before it.
    pub(super) fn note_result_of(&mut self, outcome: &Outcome, job: Option<&JobView>) {
        let result = outcome.metadata.as_ref().and_then(|metadata| metadata.result.clone());
        let (Some(result), Some(job)) = (result, job) else { return };
        let version = version(&job.record);
        let is_replaced = job.replacement.as_ref().is_some_and(|(_, conditional)| !conditional);
        if !is_replaced && !self.is_promised(version, job) {
            self.expected.results.insert(version, result);
        }
    }

    /// A result is there once its ack was accepted; `jobs` are the job before and after that.
    pub(super) fn check_result(&mut self, id: &JobId, jobs: [Option<&JobView>; 2]) {
        let [before, after] = jobs;
        let Some(version_before) = before.map(|job| version(&job.record)) else { return };
        let Some(wanted) = self.expected.results.remove(&version_before) else { return };
        let is_it = |job: &&JobView| version(&job.record) == version_before && job.state == State::Done;
        let kept = after.filter(is_it).and_then(|job| job.record.metadata().ok()).and_then(|metadata| metadata.result);
        if kept.as_ref() != Some(&wanted) {
            self.bad(format!("[10] LOST: the result of {id} ({version_before}): it is {after:?}"));
        }
    }

    /// A handler starts with this state.
    pub(in crate::simulation) fn starts_with(
        &mut self,
        node: &NodeId,
        id: &JobId,
        run: u64,
        state: Option<&KeptState>,
    ) {
        let is_current = self.expected.rows.get(&(node.clone(), id.clone())) == Some(&run);
        if let Some(version) = self.runs.get(&run).filter(|_| is_current).map(|run| run.version) {
            self.check_state(id, version, state);
        }
    }

    /// Checks the state that a claim or a handler brings.
    pub(super) fn check_state(&mut self, id: &JobId, version: u64, state: Option<&KeptState>) {
        if let Some(wanted) = self.expected.states.get(&version).filter(|wanted| wanted.as_ref() != state) {
            self.bad(format!("[10] {id} ({version}) comes with {state:?}, though its last run has left {wanted:?}"));
        }
    }
}

//! The state that a run leaves for the next one: a claim brings the one that was left last, by an outcome or a checkpoint.

use super::super::version::version;
use super::record::Checker;
use dq::job::{JobId, KeptState, NodeId, Token};
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

    /// An outcome has brought its state, if it has one.
    pub(super) fn note_state_of(&mut self, outcome: &Outcome, job: Option<&JobView>) {
        let keeps = matches!(outcome.change, Change::Rejoin(_) | Change::Retry(_) | Change::Park | Change::Dead);
        if let (Some(metadata), Some(job)) = (outcome.metadata.as_ref().filter(|_| keeps), job) {
            self.expected.states.insert(version(&job.record), metadata.state.clone());
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

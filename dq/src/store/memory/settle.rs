//! The step that ends runs: `settle`.
//!
//! The token alone judges (PROTOCOL.md rule 10): an outcome of another run changes nothing, whatever turns and leases say.

use super::leave::Exit;
use super::now::Now;
use super::topic::{Topic, within};
use crate::job::NodeId;
use crate::store::StoreError;
use crate::store::step::{Settle, Settled, Verdict};

impl Topic {
    /// RUNNING → wherever the outcomes say; renews. A second outcome of a run finds its row gone and is stale.
    pub(crate) fn settle(&mut self, now: Now, node: &NodeId, request: Settle) -> Result<Settled, StoreError> {
        within("the number of outcomes", request.outcomes.len())?;
        let mut verdicts = Vec::with_capacity(request.outcomes.len());
        for outcome in request.outcomes {
            let holds = self.jobs.run_mut(node, &outcome.id, outcome.token).is_some();
            if holds {
                self.leave(now, &outcome.id, Exit::Settled(outcome.change, outcome.metadata));
            }
            verdicts.push(if holds { Verdict::Done } else { Verdict::Stale });
        }
        self.extend_lease(now, node, request.last_seen, request.lease);
        Ok(Settled { lease_status: self.lease_status(node), verdicts })
    }
}

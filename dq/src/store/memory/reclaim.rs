//! The step that takes jobs from a node that is taken for dead: `reclaim` (PROTOCOL.md rules 19 and 20).

use super::leave::Exit;
use super::now::Now;
use super::topic::{Topic, within};
use crate::job::JobId;
use crate::store::StoreError;
use crate::store::step::{Reclaim, Reclaimed};
use crate::time::Timestamp;

impl Topic {
    /// RUNNING → where each row was claimed from. Does nothing unless the lease ended and is the one that was seen.
    pub(crate) fn reclaim(&mut self, now: Now, request: &Reclaim) -> Result<Reclaimed, StoreError> {
        within("the limit of a reclaim", request.limit)?;
        let Some(holder) = self.jobs.holders().get(&request.node) else { return Ok(Reclaimed::default()) };
        if holder.lease != request.seen || holder.lease > now.floor() {
            return Ok(Reclaimed::default());
        }
        let charged = (holder.lease != Timestamp::EPOCH).then_some(request.max_crashes);
        let rows: Vec<JobId> = holder.rows.iter().take(request.limit).cloned().collect();
        for id in &rows {
            self.leave(now, id, Exit::Reclaimed { charged });
        }
        Ok(Reclaimed { moved: rows.len(), left: self.jobs.rows(&request.node) })
    }
}

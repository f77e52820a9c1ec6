//! What replays a journal: rows become what a change says. Nothing here is noted as a change of a step.

use std::collections::BTreeSet;
use std::mem;

use super::{Holder, Jobs, Place, Slot, enter};
use crate::job::{Isolation, JobId, NodeId};
use crate::store::memory::pending::PendingCommand;
use crate::store::step::DEAD_LEASE;
use crate::time::Timestamp;

/// The row that a change is about is not there, or is not one that the change can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::memory) struct NoRow;

impl Jobs {
    /// Puts a row; it replaces the one that had its id.
    pub(in crate::store::memory) fn restore(&mut self, id: JobId, slot: Slot) {
        let place = slot.place.clone();
        enter(&mut self.schedules, &id);
        if let Some(old) = self.slots.insert(id.clone(), slot) {
            self.vacate(&id, &old.place);
        }
        self.occupy(id, &place);
    }

    /// Says whether a node that has rows had released its lease. If not, its process is taken for dead.
    pub(in crate::store::memory) fn restore_lease(&mut self, node: &NodeId, is_released: bool) -> Result<(), NoRow> {
        let holder = self.holders.get_mut(node).ok_or(NoRow)?;
        holder.lease = if is_released { Timestamp::EPOCH } else { DEAD_LEASE };
        Ok(())
    }

    /// Removes a row.
    pub(in crate::store::memory) fn restore_gone(&mut self, id: &JobId) -> Result<(), NoRow> {
        let slot = self.slots.remove(id).ok_or(NoRow)?;
        if id.schedule_name().is_some() {
            self.schedules.remove(id);
        }
        self.vacate(id, &slot.place);
        Ok(())
    }

    /// Moves a row to a place.
    pub(in crate::store::memory) fn restore_place(&mut self, id: JobId, place: &Place) -> Result<(), NoRow> {
        let slot = self.slots.get_mut(&id).ok_or(NoRow)?;
        let from = mem::replace(&mut slot.place, place.clone());
        self.vacate(&id, &from);
        self.occupy(id, place);
        Ok(())
    }

    pub(in crate::store::memory) fn restore_crashes(&mut self, id: &JobId, crashes: u32) -> Result<(), NoRow> {
        self.slots.get_mut(id).ok_or(NoRow)?.crashes = crashes;
        Ok(())
    }

    /// Puts other metadata in front of the last `kept` bytes of the record.
    pub(in crate::store::memory) fn restore_metadata(
        &mut self,
        id: &JobId,
        metadata: &[u8],
        kept: usize,
    ) -> Result<(), NoRow> {
        let slot = self.slots.get_mut(id).ok_or(NoRow)?;
        slot.record = slot.record.with_metadata_bytes(metadata, kept).ok_or(NoRow)?;
        Ok(())
    }

    /// Sets the isolation and the pending command of a run.
    pub(in crate::store::memory) fn restore_notes(
        &mut self,
        id: &JobId,
        isolation: Option<Isolation>,
        pending: Option<Box<PendingCommand>>,
    ) -> Result<(), NoRow> {
        let slot = self.slots.get_mut(id).ok_or(NoRow)?;
        let Place::Running(run) = &mut slot.place else { return Err(NoRow) };
        (run.isolation, run.pending) = (isolation, pending);
        Ok(())
    }

    /// Puts an id in the index of its place. A node that holds it is of a process that has ended.
    fn occupy(&mut self, id: JobId, place: &Place) {
        match place {
            Place::Timed(place, at) => self.index_mut(*place).insert(*at, id),
            Place::Running(run) => {
                let holder = self.holders.entry(run.node.clone());
                let holder = holder.or_insert_with(|| Holder { lease: DEAD_LEASE, rows: BTreeSet::new() });
                holder.rows.insert(id);
            }
        }
    }
}

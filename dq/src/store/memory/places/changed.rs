//! Who is told, at the end of a step, what the step has touched.

use std::mem;

use super::slot::Slot;
use super::touched::{Log, Touch};
use super::{Jobs, is_released};
use crate::job::{JobId, NodeId};

/// Is told what a step has touched.
pub(in crate::store::memory) trait Changed {
    /// The step has changed this of a row. `is_released`: whether the node that holds the job has released its lease.
    fn changed(&mut self, id: &JobId, slot: &Slot, touched: Touch, is_released: impl FnOnce() -> bool);

    /// The step has removed a row.
    fn gone(&mut self, id: &JobId);

    /// A node that has rows has released its lease, or has renewed a released one.
    fn lease(&mut self, node: &NodeId, is_released: bool);
}

impl Jobs {
    pub(in crate::store::memory) const fn log(&self) -> Log {
        self.touched.log
    }

    /// Sets how much a journal wants to know of each step.
    pub(in crate::store::memory) fn set_log(&mut self, log: Log) {
        self.touched.log = log;
    }

    /// Tells `to` what the step has touched.
    pub(in crate::store::memory) fn take_touched(&mut self, to: &mut impl Changed) {
        if self.touched.is_empty() {
            return;
        }
        let lists = self.touched.take();
        // A removed id is known again if a new job has taken its place, which is then whole.
        for id in lists.gone.iter().filter(|id| lists.changed.is_empty() || !self.slots.contains_key(*id)) {
            to.gone(id);
        }
        for id in &lists.changed {
            let Some(slot) = self.slots.get_mut(id) else { continue };
            let touched = mem::take(&mut slot.touched);
            if !touched.is_empty() {
                let holders = &self.holders;
                to.changed(id, slot, touched, || is_released(holders, slot));
            }
        }
        for node in &lists.leases {
            if let Some(holder) = self.holders.get(node) {
                to.lease(node, holder.is_released());
            }
        }
        self.touched.reuse(lists);
    }
}

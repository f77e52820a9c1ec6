//! Who is told, at the end of a step, what the step has touched.

use super::slot::Slot;
use super::touched::Touch;
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

//! What belongs to the node: its tasks, its handle, its health and its broadcasts.

mod broadcast;
pub(super) mod channel_stats;
pub(super) mod handle;
pub(super) mod health;
pub(crate) mod plan;
mod refused;
pub(super) mod shutdown;
pub(crate) mod supervisor;

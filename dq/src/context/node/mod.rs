//! What belongs to the node: its tasks, its handle, its health and its broadcasts.

mod broadcast;
pub(super) mod channel_health;
pub(super) mod handle;
pub(super) mod health;
pub(crate) mod plan;
pub(super) mod probe;
mod refused;
mod signals;
pub(crate) mod supervisor;

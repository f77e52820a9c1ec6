//! What the tests share: stores under examination, throw-away servers, a store that fails when it is told to,
//! and one on a server that keeps the time of a paused clock.

mod faulty_store;
#[cfg(doctest)]
mod guide;
pub mod memory;
mod monitor;
#[cfg(unix)]
mod node_process;
mod paced;
pub mod redis;

pub use faulty_store::{Fault, Faults, FaultyStore};
pub use monitor::Monitor;
#[cfg(unix)]
pub use node_process::{Count, NodeProcess, Received, Runs};
pub use paced::PacedStore;

//! What the tests share: store fixtures, throw-away servers, node processes, a proxy and a store that inject faults, and a Redis store
//! that follows a paused clock.

mod faulty_store;
#[cfg(unix)]
pub mod file;
mod fixture;
#[cfg(doctest)]
mod guide;
pub mod journaled;
pub mod limits;
mod monitor;
#[cfg(unix)]
mod node_process;
mod paced;
mod proxy;
pub mod redis;
mod tier;
mod topics;

pub use faulty_store::{Fault, Faults, FaultyStore};
pub use fixture::Fixture;
pub use monitor::Monitor;
#[cfg(unix)]
pub use node_process::{Count, NodeProcess, RunLog, Runs};
pub use paced::PacedStore;
pub use proxy::{Direction, Proxy};
pub use tier::each;

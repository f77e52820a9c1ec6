//! What the tests share: stores under examination, throw-away servers, and a store that fails when it is told to.

mod faulty_store;
pub mod memory;
pub mod redis;

pub use faulty_store::{Fault, Faults, FaultyStore};

//! What the tests share: throw-away servers, and a store that fails when it is told to.

mod faulty_store;
pub mod redis;

pub use faulty_store::{Fault, Faults, FaultyStore};

//! The testing kit, behind the feature `testing`.
//!
//! [`conformance`] is the list of behaviours that every store has, [`ManualClock`] a store's clock that stands still until
//! it is moved by hand. Nothing here is meant for production: what is misused panics.

pub mod conformance;
mod manual_clock;

pub use manual_clock::ManualClock;

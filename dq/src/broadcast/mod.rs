//! Broadcasts: every connected node that listens to the channel gets it, at most once.
//!
//! The channel of a broadcast job is its topic.

pub(crate) mod erased;
mod listener;

pub use listener::{Broadcast, BroadcastListener, Declared};

pub(crate) use erased::{ErasedBroadcast, erase};

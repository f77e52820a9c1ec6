//! The whole of dq on the memory store, under the paused clock.

mod provider;

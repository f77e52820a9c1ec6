//! The tests on a Redis store.
//!
//! Nodes and server share tokio's paused clock ([`dq_tests::PacedStore`]), so a test expects the same of both stores, to the
//! millisecond, and an hour takes no time.

#[path = "backend/redis.rs"]
mod backend;
#[path = "on_every_store.rs"]
mod on_every_store;

use on_every_store::{isolation, scripted_listener};

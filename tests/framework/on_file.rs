//! The tests on a `file:` store.
//!
//! Tokio's paused clock stands still while an answer waits for the disk ([`dq_tests::PacedStore`]), so a test expects the same
//! as on the memory store, to the millisecond.

#![cfg(unix)]

#[path = "backend/file.rs"]
mod backend;
#[path = "on_every_store.rs"]
mod on_every_store;

use on_every_store::{isolation, scripted_listener};

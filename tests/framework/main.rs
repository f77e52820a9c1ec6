//! Tests of dq through its public API: on the memory store here, on a Redis store in `on_redis.rs`, on a `file:` store in
//! `on_file.rs`. Only here are `startup`, which chooses stores itself, and `signals`, whose processes choose theirs.

#[path = "backend/memory.rs"]
mod backend;
#[path = "on_every_store.rs"]
mod on_every_store;
mod signals;
mod startup;

use on_every_store::{isolation, scripted_listener};

//! Tests of dq through its public API: on the memory store here, on a Redis store in `on_redis.rs`, on a `file:` store in
//! `on_file.rs`.

mod answers;
#[path = "backend/memory.rs"]
mod backend;
mod batches;
mod blocking;
mod broadcast;
mod broadcasts;
mod concurrency;
mod crashes;
mod ending;
mod failures;
mod health;
mod idle;
mod isolation;
mod lookahead;
mod nearby;
mod nodes;
mod on_claim;
mod outages;
mod parking;
mod pending;
mod provider;
mod rejoins;
mod reminders;
mod restarts;
mod retries;
mod runs;
mod schedules;
mod scripted_listener;
mod shutdown;
mod signals;
mod startup;
mod starved;
mod timeouts;

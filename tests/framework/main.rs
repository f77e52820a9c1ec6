//! The whole of dq, what a user of it sees: on the memory store here, on a Redis store in `on_redis.rs`.

mod blocking;
mod broadcast;
mod broadcasts;
mod concurrency;
mod crashes;
mod ending;
mod failures;
mod health;
mod idle;
mod nodes;
mod on_claim;
mod outages;
mod parking;
mod pending;
mod provider;
mod rejoins;
mod retries;
mod runs;
mod shutdown;
#[path = "stage/memory.rs"]
mod stage;
mod startup;
mod timeouts;
mod worker;

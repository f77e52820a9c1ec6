//! The whole of dq on the memory store: what a user of it sees.

mod broadcast;
mod concurrency;
mod ending;
mod failures;
mod health;
mod marks;
mod on_claim;
mod parking;
mod provider;
mod rejoins;
mod retries;
mod runs;
mod shutdown;
mod startup;
mod timeouts;
mod worker;

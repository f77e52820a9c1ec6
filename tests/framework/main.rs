//! The whole of dq on the memory store: what a user of it sees.

mod blocking;
mod broadcast;
mod broadcasts;
mod concurrency;
mod crashes;
mod ending;
mod failures;
mod health;
mod idle;
mod marks;
mod nodes;
mod on_claim;
mod outages;
mod parking;
mod provider;
mod rejoins;
mod retries;
mod runs;
mod shutdown;
mod startup;
mod timeouts;
mod worker;

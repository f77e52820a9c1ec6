//! The whole of dq on the memory store: what a user of it sees.

mod broadcast;
mod ending;
mod failures;
mod parking;
mod provider;
mod rejoins;
mod retries;
mod runs;
mod startup;
mod timeouts;
mod worker;

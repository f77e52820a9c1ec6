//! The whole of dq on the memory store: what a user of it sees.

mod broadcast;
mod ending;
mod provider;
mod startup;

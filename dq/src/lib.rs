//! dq runs work later: annotate a handler struct, add jobs with a delay, and they run when due on one of many nodes,
//! never early, at least once.

pub mod broadcast;
pub mod config;
pub mod context;
pub mod environment;
pub mod job;
pub mod listener;
pub mod provider;
pub mod store;
pub mod time;

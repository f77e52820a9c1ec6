//! Tests of the Redis store beyond the conformance suite: errors, full memory, foreign data, cost, connections.

mod arriving;
mod broadcasts;
mod connections;
mod cost;
mod directory;
mod disturbed;
mod durability;
mod errors;
mod full_memory;
mod health;
mod idle;
mod listeners;
mod lost;
mod mangled;
mod metadata;
mod mistyped;
mod payloads;
mod processes;
mod proxy;
mod refused;
mod scripted;
mod shared;
mod silence;
mod tls;
mod topic;
mod unsent;

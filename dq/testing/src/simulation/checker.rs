//! The checker compares the store with what is allowed after every step. It numbers runs itself and never relies on fences.
//!
//! It knows every request and every answer. Apart from the store, it records which versions of jobs took effect, which
//! ended and why, and what callers were promised. When the store falls back to an earlier state, so do these records.

mod after;
mod broadcasts;
mod caps;
mod changes;
mod claimed;
mod crashes;
mod effects;
mod gate;
mod gated;
mod groups;
mod handlers;
mod kept;
mod order;
mod outcome;
mod record;
mod slow;
mod steps;
mod takeovers;
mod ticks;
mod turns;

pub(super) use order::AGEING;
pub(super) use record::{AddResult, Caps, Checker, Did, End, Expected, HandlerKind};
pub(super) use takeovers::Leased;

//! The simulation as users of dq have it: it finds what is wrong with their listeners, and accuses no right one.

mod decisions;
mod fences;
mod payments;
mod same;
mod shrinking;
mod spawning;

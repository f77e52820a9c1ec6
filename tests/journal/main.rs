//! The journal engine on a simulated disk and on a real one: what was confirmed is there, whatever happened.

mod basics;
mod cuts;
mod faults;
mod fixture;
mod flips;
mod full;
mod history;
mod power;
mod random;
mod real;
mod snapshots;

//! The journal engine on a simulated disk and on a real one: what was confirmed is there, whatever happened.

mod basics;
mod fixture;

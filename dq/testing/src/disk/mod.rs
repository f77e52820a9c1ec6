//! A directory in memory for tests of what a store keeps in files: with faults, and with power cuts.
//!
//! [`SimulatedDisk`] distinguishes what programs see from what the disk has. Everything that was not synced is a list of
//! [units](SimulatedDisk::units): a sector of 512 bytes that was written, a name that was made, changed or removed. [`SimulatedDisk::cut`] makes the disk that is there after a power cut: each unit has a [`Fate`] of its own.

mod faults;
mod machine;
mod open_file;
mod simulated;
mod units;

pub use faults::Operation;
pub use simulated::SimulatedDisk;
pub use units::Fate;

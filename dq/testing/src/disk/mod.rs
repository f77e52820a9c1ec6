//! A directory in memory for tests of what a store keeps in files: with faults, and with power cuts.
//!
//! [`SimulatedDisk`] distinguishes what programs see from what the disk has. Everything that was not synced is a list of
//! [units](SimulatedDisk::units): a name that was made, changed or removed, or a block of a file. As a page cache does, the disk
//! writes a block as a whole, with what was synced beside the new bytes. [`SimulatedDisk::cut`] makes the disk that is there after a
//! power cut: each unit has a [`Fate`] of its own.

mod faults;
mod machine;
mod open_file;
mod simulated;
mod units;

pub use faults::Operation;
pub use simulated::SimulatedDisk;
pub use units::Fate;

/// The bytes of a block, unless the test says otherwise: a page of most systems.
pub const BLOCK: usize = 4_096;

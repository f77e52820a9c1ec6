//! The journal engine on a simulated disk and on a real one: what was confirmed is there, whatever happened.

mod basics;
mod corpora;
mod cuts;
mod early;
mod faults;
mod fixture;
mod flips;
mod follow;
mod full;
mod growth;
mod history;
mod limits;
mod mutated;
mod mutation;
mod power;
mod random;
mod real;
mod snapshots;
mod watcher;
mod watermarks;
mod written;

use std::sync::Arc;

use dq::store::file::journal::Journal;
use dq_testing::disk::SimulatedDisk;

/// A new journal on a new disk.
fn opened() -> (SimulatedDisk, Arc<Journal>) {
    let disk = SimulatedDisk::new();
    let (journal, ..) = fixture::open(&disk, &fixture::options()).unwrap();
    (disk, journal)
}

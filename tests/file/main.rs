//! The `file:` store, from its start to the failures of its disk.
//!
//! * `reopening`, `fences`, `large`, `snapshots`: what the next process finds.
//! * `power_cuts`: what it finds after a power cut at any moment.
//! * `limits`: what a journal may have that no dq wrote.
//! * `full_disk`, `failed_disk`: what callers and `health()` see of a disk that is full or fails.
//! * `memory`, `parts`: a limit of the memory, and directories that are read part by part or filled without it.
//! * `view`: what another process sees meanwhile.
//! * `real_disks`: disks of this machine that are read-only, without permission, or full.
//! * `buffered`: adds that wait in a directory while another store is away.
//! * `backup`, `salvage`: copies of a store, and what is saved of a damaged one.
//! * `hardened`: what other users of the machine can do.
//! * `sharing`, `refused`: who may open a directory, and what a start says that may not.

#![cfg(unix)]

mod backup;
mod buffered;
mod failed_disk;
mod full_disk;
mod hardened;
mod large;
mod limits;
mod memory;
mod node;
mod parts;
mod power_cuts;
mod real_disks;
mod refused;
mod reopening;
mod rig;
mod salvage;
mod sharing;
mod snapshots;
mod view;

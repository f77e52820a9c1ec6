//! Keeps jobs in the files of a directory.
//!
//! [`disk`] is what the store needs of a file system, and [`journal`] the engine above it, which knows nothing about jobs.

pub mod disk;
pub mod journal;

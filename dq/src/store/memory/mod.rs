//! Jobs in the memory of this process.

//! Programs that use dq.

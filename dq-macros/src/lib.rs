//! The macros of dq.

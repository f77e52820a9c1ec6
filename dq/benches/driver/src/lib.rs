//! What the benchmarks of dq share, and nothing of dq itself: a server of their own, the bare client that dq is compared with,
//! meters, and the table.
//!
//! A benchmark is `cargo bench -p dq --bench NAME -- [OPTIONS]`; [`Arguments`] lists the options.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops at the first surprise")]

pub mod arguments;
pub mod bare;
pub mod curve;
pub mod folder;
pub mod lateness;
pub mod meter;
pub mod permits;
pub mod process;
pub mod report;
pub mod server;

pub use arguments::Arguments;
pub use folder::Folder;
pub use lateness::{Lateness, now_ms};
pub use meter::{Cost, Meter};
pub use permits::Permits;
pub use process::in_process;
pub use report::{Bench, Side};
pub use server::Server;

/// The payload of every job: 100 bytes of JSON.
pub const PAYLOAD: &str = concat!(
    r#"{"payload":""#,
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    r#""}"#
);
const _: () = assert!(PAYLOAD.len() == 100);

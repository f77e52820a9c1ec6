//! Cargo.toml renames dq: no attribute needs `crate = ".."`.

use work::prelude::*;

/// A payload for every `T` that serde can write and read.
#[derive(DelayJob)]
#[job(topic = "page", delay = "1s", id = "{number}")]
pub struct Page<T> {
    /// The id.
    pub number: u64,
    /// The data.
    pub items: Vec<T>,
}

/// A listener.
#[derive(Debug)]
#[delay_listener(topic = "page", timeout = "5s", register = false)]
pub struct OnPage {
    /// A dependency.
    pub orders: u8,
}

/// A listener of broadcasts.
#[derive(Debug)]
#[broadcast_listener(channels = ["prices"], register = false)]
pub struct OnPrices;

fn main() {}

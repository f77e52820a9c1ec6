//! What the network and the store's signals are like at the moment: data that the faults change.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use super::process::Process;
use dq::store::{Signal, Signals};

/// What is the matter with the store as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NetworkState {
    /// How likely a request makes its wire fail.
    pub(super) failing: f64,
    pub(super) slow_until: u64,
    pub(super) out_until: u64,
    pub(super) outage: Outage,
    /// Steps that add are refused until then: the memory is full.
    pub(super) full_until: u64,
}

/// What becomes of requests during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Outage {
    /// They are lost.
    #[default]
    Silent,
    /// They are refused: certainly not done.
    Loading,
    /// The connection is reset: nobody knows.
    Reset,
    /// They are executed after it.
    Frozen,
}

/// A subscription of a process.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) process: Arc<Process>,
    pub(super) inner: Mutex<Signals>,
    pub(super) outer: mpsc::Sender<Signal>,
    pub(super) last: AtomicU64,
    /// It hears broadcasts.
    pub(super) broadcasts: bool,
}

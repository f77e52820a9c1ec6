//! The state of the network, and the subscriptions to the store's signals: data that faults change.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::process::Process;
use dq::job::TopicKey;
use dq::store::{Feed, Signals};

/// The state of the network: how slow and lossy it is, and whether the store can be reached.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NetworkState {
    /// The probability that a request breaks its wire.
    pub(super) failing: f64,
    pub(super) slow_until: u64,
    pub(super) outage_until: u64,
    pub(super) outage: Outage,
    /// The store refuses connections in this time, and broke those that existed when it began.
    pub(super) refusing: (u64, u64),
    /// Subscriptions are refused until this time.
    pub(super) unsubscribed_until: u64,
    /// How many bytes of answers a link carries in a second; 0: any number.
    pub(super) bandwidth: u64,
    /// The next node that has outcomes to send dies before it does.
    pub(super) kills_next_settle: bool,
    /// The store refuses steps that add until this time: its memory is full.
    pub(super) full_until: u64,
}

/// What happens to requests during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Outage {
    /// They are lost.
    #[default]
    Silent,
    /// They are refused, and certainly not executed.
    Loading,
    /// The connection is reset, and whether they were executed is unknown.
    Reset,
    /// They are executed after the outage.
    Frozen,
}

/// A subscription of a process.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) process: Arc<Process>,
    pub(super) inner: Mutex<Signals>,
    pub(super) outer: Feed,
    pub(super) last: AtomicU64,
    pub(super) topic: TopicKey,
    /// It receives broadcasts.
    pub(super) broadcasts: bool,
}

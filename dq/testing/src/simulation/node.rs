//! A node of a run, and the limits of its topic.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::checker::Caps;
use super::process::Process;
use dq::job::NodeId;
use dq::testing::seam::Running;

/// The limits of the topic.
pub(super) const CAPS: Caps = Caps { crashes: 3, attempts: 4, permits: 0, dead_retention: Duration::from_secs(60) };

/// After how long a parked job is swept.
pub(super) const UNACKED_AGE: Duration = Duration::from_secs(20);

/// A node and its process.
#[derive(Debug)]
pub(super) struct SimNode {
    pub(super) process: Arc<Process>,
    pub(super) id: NodeId,
    pub(super) running: Mutex<Option<Running>>,
    pub(super) stopping: AtomicBool,
    /// The node is killed after it has sent this many requests; never at `u64::MAX`.
    pub(super) dies_after: AtomicU64,
    /// The node is paused after it has sent this many requests; never at `u64::MAX`.
    pub(super) pauses_after: AtomicU64,
    /// How long it is paused then, in µs.
    pub(super) pause: AtomicU64,
}

impl SimNode {
    /// One that runs until something else is decided.
    pub(super) fn new(process: &Arc<Process>, id: NodeId) -> Arc<Self> {
        Arc::new(Self {
            process: Arc::clone(process),
            id,
            running: Mutex::default(),
            stopping: AtomicBool::new(false),
            dies_after: AtomicU64::new(u64::MAX),
            pauses_after: AtomicU64::new(u64::MAX),
            pause: AtomicU64::new(0),
        })
    }
}

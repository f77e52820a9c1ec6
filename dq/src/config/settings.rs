//! The settings that the contexts run with, and every default in its one place.

use std::time::Duration;

use crate::job::RetryPolicy;
use crate::listener::{AckMode, OnTimeout};
use crate::store::Durability;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Settings of one topic on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicSettings {
    /// Handlers at once, on this node. Default 64, 1 to 100,000.
    pub concurrency: usize,
    /// The timeout of a handler. Default 30 s; `None` is no limit.
    pub timeout: Option<Duration>,
    /// What follows a timeout. Default: a failure as any.
    pub on_timeout: OnTimeout,
    /// When a failed job runs again. Default 5 times: 10 s, three times as long each, at most 1 h, ± 10 %.
    pub retry: RetryPolicy,
    /// When a job is acked. Default: when its handler returned.
    pub ack: AckMode,
    /// How many crashes exhaust a job. Default 3, at least 1.
    pub max_crashes: u32,
    /// How long a job is UNACKED before `process_unacked` is asked. Default 7 days.
    pub unacked_age: Duration,
    /// How long DEAD jobs are kept. Default 30 days.
    pub dead_kept: Duration,
    /// How many DEAD jobs are kept, the oldest go first. Default 100,000.
    pub dead_most: usize,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            concurrency: 64,
            timeout: Some(30 * SECOND),
            on_timeout: OnTimeout::Retry,
            retry: RetryPolicy::default(),
            ack: AckMode::OnReturn,
            max_crashes: 3,
            unacked_age: 7 * DAY,
            dead_kept: 30 * DAY,
            dead_most: 100_000,
        }
    }
}

/// Settings of a node, and of a provider that only adds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeSettings {
    /// How long a lease lasts. Default 15 s, at most 5 min.
    pub lease: Duration,
    /// When a lease is renewed if nothing else did. Default 5 s, at most a third of the lease.
    pub renewal: Duration,
    /// When a node looks for due jobs though nobody told it to; jittered downwards by up to a fifth. Default 15 s.
    pub fallback_scan: Duration,
    /// How long handlers may go on at shutdown. Default 25 s.
    pub grace: Duration,
    /// Whether a stopping node gives back itself what it holds; else other nodes take it back. Default yes.
    pub crash_rollback: bool,
    /// How long to wait for the answer to one request. Default 2 s.
    pub call_timeout: Duration,
    /// How long an `add` or `delete` may take, repeats included. Default 10 s.
    pub call_total: Duration,
    /// When an `add` or `delete` is answered: when the store has done it (`local`, the default), or when that many replicas
    /// of a Redis server have it too (`wait(1, 500ms)`).
    pub durability: Durability,
    /// How long after its due time a broadcast that nobody served is dropped. Default 1 h.
    pub broadcast_expires_after: Duration,
    /// The longest payload, in bytes. Default 256 KiB, at most 16 MiB.
    pub payload_limit: usize,
    /// Adds and withdrawals of a provider that may be unanswered; further callers wait. Default 10,000.
    pub unanswered_limit: usize,
}

impl NodeSettings {
    /// The most jobs of one `add_many`.
    pub const MOST_BATCH: usize = 1_000;
    /// The longest headers of a job together, in bytes.
    pub const LONGEST_HEADERS: usize = 8 * 1024;
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            lease: 15 * SECOND,
            renewal: 5 * SECOND,
            fallback_scan: 15 * SECOND,
            grace: 25 * SECOND,
            crash_rollback: true,
            call_timeout: 2 * SECOND,
            call_total: 10 * SECOND,
            durability: Durability::Local,
            broadcast_expires_after: 3600 * SECOND,
            payload_limit: 256 * 1024,
            unanswered_limit: 10_000,
        }
    }
}

//! The settings of nodes and topics, and their defaults.

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
    /// How many handlers run at once on this node. Default 64; 1 to 100,000.
    pub concurrency: usize,
    /// How long a handler may run. Default 30 s; at most ten years; `None` means no limit.
    pub timeout: Option<Duration>,
    /// What happens after a timeout. Default: a retry, as after any failure.
    pub on_timeout: OnTimeout,
    /// When a failed job runs again. Default: 5 retries, the first after 10 s, each delay three times the one before,
    /// at most 1 h, ± 10 %.
    pub retry: RetryPolicy,
    /// When dq acks a job. Default: when its handler has returned.
    pub ack: AckMode,
    /// How often a job may kill its node before dq gives it up. A job that only ran beside others is never given up for that,
    /// so dq may need up to two more crashes until it knows which job kills. Default 3; 1 to 1,000.
    pub max_crashes: u32,
    /// How long a job is UNACKED before dq calls `process_unacked`. Default 7 days; 1 ms to 10 years.
    pub unacked_age: Duration,
    /// How long the store keeps DEAD jobs. Default 30 days; 1 ms to 10 years.
    pub dead_kept: Duration,
    /// How many DEAD jobs the store keeps; it removes the oldest first. Default 100,000; 1 to 10,000,000.
    pub dead_most: usize,
    /// How long before its due time this node may claim a job, so that its handler starts when the job is due and not after the
    /// trip to the store. Default zero; at most 50 ms, in whole milliseconds.
    pub lookahead: Duration,
    /// How late jobs may start before `health()` says that the topic is degraded: more than one in a hundred of the last minute.
    /// Default `None`: nobody looks; 1 ms to 10 years.
    pub lateness_objective: Option<Duration>,
    /// How many of its moves the topic keeps of each job, the newest; zero: none, and the topic forgets those that it has. Default
    /// `None`: the topic stays as it is; at most 100.
    pub history: Option<usize>,
    /// For how long the topic keeps the history of a job after its end. Default zero: it goes with the job; at most 30 days.
    pub history_after: Duration,
    /// How many jobs a batch has at most, for a listener that takes batches. Default 100; 1 to 1,000.
    pub batch: usize,
    /// How many bytes the records of a batch have at most. A larger job is a batch of its own. Default 1 MiB; 1 byte to 16 MiB.
    pub batch_bytes: usize,
    /// Whether the store counts, minute by minute for a day, what this node claims, how late, and how the runs end. Default `false`.
    pub statistics: bool,
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
            lookahead: Duration::ZERO,
            lateness_objective: None,
            history: None,
            history_after: Duration::ZERO,
            batch: 100,
            batch_bytes: 1024 * 1024,
            statistics: false,
        }
    }
}

/// Settings of a node, or of a provider without a node. The default of `lease`, `renewal`, `call_timeout` and `call_total` is the
/// nearest value that fits to those of them, and to the `durability`, that were set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeSettings {
    /// How long a lease lasts: after a node dies, other nodes wait this long, and then for one and a half `renewal`s (longer if
    /// `call_timeout` is more than two fifths of `renewal`), before they take its jobs. Default 15 s; 100 ms to 5 min.
    pub lease: Duration,
    /// How often a node renews a lease that no other step renews. Default 5 s; at most a third of `lease`, so at most 100 s.
    pub renewal: Duration,
    /// How often a node looks for due jobs without a signal; after a signal, minus a random part of up to a fifth. It repairs
    /// lost signals. Default 15 s; 10 ms to 1 h.
    pub fallback_scan: Duration,
    /// How long handlers may go on at shutdown. Default 25 s; at most 1 h; zero cancels them at once.
    pub grace: Duration,
    /// How many handlers of all topics together run at once on this node. Each topic keeps one permit, so there may be as
    /// many as there are topics. Default `None`: no limit beside the `concurrency` of each topic; 1 to 1,000,000.
    pub node_concurrency: Option<usize>,
    /// Whether a stopping node gives its jobs back itself. Otherwise other nodes reclaim them. Default `true`.
    pub crash_rollback: bool,
    /// How long a request may wait for its answer. Default 2 s; at most `lease` minus `renewal`, and at most 4 min.
    pub call_timeout: Duration,
    /// How long an add or a command may take, including its repeats. Default 10 s; from `call_timeout` to 1 h.
    pub call_total: Duration,
    /// When an add or a command succeeds: when the store has done it (`local`, the default), or when that many replicas
    /// of a Redis server have it too (`wait(1, 500ms)`).
    pub durability: Durability,
    /// How long after its due time dq drops a broadcast that no node published. Default 1 h; 1 ms to 10 years.
    pub broadcast_expires_after: Duration,
    /// The longest payload, in bytes. Default 256 KiB; 1 byte to 16 MiB.
    pub payload_limit: usize,
    /// How many adds and commands of a provider may wait for an answer; further callers wait for a free place. Default
    /// 10,000; 1 to 1,000,000.
    pub unanswered_limit: usize,
    /// How many bytes the adds and commands of a provider may have that wait for an answer, over all its topics; further
    /// callers wait. One request, or one `add_many`, that is larger passes alone. Default 64 MiB; 1 byte to 1 GiB.
    pub unanswered_bytes: usize,
}

impl NodeSettings {
    /// The most jobs in one `add_many`.
    pub const MOST_BATCH: usize = 1_000;
    /// The total size of a job's headers, in bytes.
    pub const LONGEST_HEADERS: usize = 8 * 1024;
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            lease: 15 * SECOND,
            renewal: 5 * SECOND,
            fallback_scan: 15 * SECOND,
            grace: 25 * SECOND,
            node_concurrency: None,
            crash_rollback: true,
            call_timeout: 2 * SECOND,
            call_total: 10 * SECOND,
            durability: Durability::Local,
            broadcast_expires_after: 3600 * SECOND,
            payload_limit: 256 * 1024,
            unanswered_limit: 10_000,
            unanswered_bytes: 64 * 1024 * 1024,
        }
    }
}

//! The table of all spans. `docs/guide/traces.md` shows it, and a test compares the two.

/// A span that dq reports through `tracing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// Its name.
    pub name: &'static str,
    /// Its level.
    pub level: tracing::Level,
    /// The names of its fields. A run of a batch has `batch`, the number of its jobs, in place of `job.id` and `attempt`.
    pub fields: &'static [&'static str],
    /// What it covers.
    pub help: &'static str,
}

/// All spans.
pub const SPANS: &[Span] = &[
    Span {
        name: "dq.add",
        level: tracing::Level::DEBUG,
        fields: &["topic", "job.id"],
        help: "the answer of the store to an add",
    },
    Span {
        name: "dq.claim",
        level: tracing::Level::DEBUG,
        fields: &["topic", "jobs", "more"],
        help: "jobs that a node has claimed together",
    },
    Span {
        name: "dq.run",
        level: tracing::Level::INFO,
        fields: &["topic", "job.id", "attempt", "fence", "batch"],
        help: "a run of a handler: of one job, or of a batch",
    },
    Span {
        name: "dq.settle",
        level: tracing::Level::DEBUG,
        fields: &["topic", "jobs"],
        help: "the answer of the store to the outcomes of jobs",
    },
    Span {
        name: "dq.broadcast",
        level: tracing::Level::INFO,
        fields: &["channel", "job.id", "listener"],
        help: "a run of a broadcast listener",
    },
];

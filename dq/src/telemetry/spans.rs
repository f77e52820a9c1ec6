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

macro_rules! spans {
    ($($name:literal $level:ident [$($field:literal),*] $help:literal;)+) => {
        /// All spans.
        pub const SPANS: &[Span] = &[
            $(Span { name: $name, level: tracing::Level::$level, fields: &[$($field),*], help: $help },)+
        ];
    };
}

spans! {
    "dq.add" DEBUG ["topic", "job.id"] "the answer of the store to an add";
    "dq.claim" DEBUG ["topic", "jobs", "more"] "jobs that a node has claimed together";
    "dq.run" INFO ["topic", "job.id", "attempt", "fence", "batch"] "a run of a handler: of one job, or of a batch";
    "dq.settle" DEBUG ["topic", "jobs"] "the answer of the store to the outcomes of jobs";
    "dq.broadcast" INFO ["channel", "job.id", "listener"] "a run of a broadcast listener";
}

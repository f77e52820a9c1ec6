//! The tables of all metrics and all spans. `docs/guide/metrics.md` and `docs/guide/traces.md` show them, and tests compare the two.

/// A metric that dq reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name. The unit is its last word; `total` after it marks a counter.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows while the process lives.
    Counter,
    /// It is what it was last set to.
    Gauge,
    /// The distribution of seconds.
    Histogram,
}

impl MetricKind {
    /// The kind as a word, for example `counter`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

macro_rules! metrics {
    ($($ident:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $(pub(crate) const $ident: Metric =
            Metric { name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help };)+

        /// Every metric of dq.
        pub const METRICS: &[Metric] = &[$($ident),+];
    };
}

metrics! {
    ADDED = Counter "dq_jobs_added_total" ["topic"] "Jobs that the store took from this process, replacements among them.";
    CLAIMED = Counter "dq_jobs_claimed_total" ["topic"] "Jobs that this node claimed.";
    SETTLED = Counter "dq_jobs_settled_total" ["topic", "outcome"] "Outcomes that the store took: ack, rejoin, retry, rollback, park, dead, drop or tick.";
    FAILED = Counter "dq_jobs_failed_total" ["topic", "cause"] "Handlers that failed: error, panic, timeout or decode; stopped where the node or its runtime ended first.";
    RECLAIMED = Counter "dq_jobs_reclaimed_total" ["topic"] "Jobs that this node took back from dead nodes.";
    PLACE_LOST = Counter "dq_jobs_restored_total" ["topic"] "Jobs that were put back because another program had removed them from their place.";
    RELAYED = Counter "dq_follow_ups_relayed_total" ["topic"] "Entries of the outbox of the topic that this node brought to their topics.";
    REFUSED_FOLLOW_UPS = Counter "dq_follow_ups_refused_total" ["topic"] "Follow-ups of the topic that their topics refused for good.";
    STARVED = Counter "dq_runs_starved_total" ["topic"] "Runs that the runtime of the handlers did not begin within two seconds.";
    LATE_OUTCOMES = Counter "dq_outcomes_late_total" ["topic"] "Handlers that returned after their runs had been given up.";
    STALE_OUTCOMES = Counter "dq_outcomes_stale_total" ["topic"] "Outcomes that the store refused because another run had the job.";
    LEASE_LOST = Counter "dq_runs_lease_lost_total" ["topic"] "Handlers that were cancelled because the lease, or the job, was lost.";
    RESTARTS = Counter "dq_topic_restarts_total" ["topic"] "Restarts of the task of a topic after a panic of dq itself.";
    OUTAGES = Counter "dq_store_outages_total" [] "Outages of the store that began.";
    OUTAGE_SECONDS = Counter "dq_store_outage_seconds_total" [] "How long the outages lasted that are over, in whole seconds.";
    OUT_OF_REACH = Gauge "dq_store_outage" [] "1 while the store does not answer or refuses what it is asked, otherwise 0.";
    MEMORY = Gauge "dq_store_memory_bytes" [] "What the jobs of a `file:` store take in memory, as the store counts it.";
    MEMORY_LIMIT = Gauge "dq_store_max_memory_bytes" [] "How much they may take before adds are refused; 0: there is no limit.";
    HELD = Gauge "dq_jobs_held" ["topic"] "Jobs that this node holds.";
    RUNNING = Gauge "dq_handlers_running" ["topic"] "Handlers of this node that have a permit.";
    WAITING = Gauge "dq_jobs_awaiting_permit" ["topic"] "Jobs of this node that wait for a permit.";
    SETTLING = Gauge "dq_outcomes_settling" ["topic"] "Outcomes of this node that the store has not answered yet.";
    FOLLOW_UPS = Gauge "dq_follow_ups_waiting" ["topic"] "Entries that waited in the outbox of the topic when this node last relayed.";
    DEPTH = Gauge "dq_jobs" ["topic", "state"] "Jobs of the topic in the store: delayed, ready (those delayed that are due), running, unacked, dead or done.";
    GATED = Gauge "dq_jobs_blocked" ["topic", "gate"] "Due jobs of the topic in the store that wait for the end of a pause, for its concurrency on all nodes, for its rate, or for a job of their group.";
    LATENESS = Histogram "dq_job_lateness_seconds" ["topic"] "From due to claim; of a job that was claimed before it was due, from due to the time at which its handler could start.";
    RELAY = Histogram "dq_follow_up_lag_seconds" ["topic"] "From the outcome of a run until its follow-ups were in their topic.";
    RUN = Histogram "dq_job_duration_seconds" ["topic"] "From the begin of a handler, or of its `on_exhausted`, until its topic has noted its end. A batch counts once.";
    ADD = Histogram "dq_add_duration_seconds" ["topic"] "From the first poll of an add until the store has answered.";
    CALL = Histogram "dq_store_call_duration_seconds" ["step"] "From the sending of a request of a node until its answer was read.";
}

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

//! The pages of `docs/guide/`: every Rust block in them is a doctest.

/// Doctests of a page: `page!(Axum = "axum.md")`.
macro_rules! page {
    ($($name:ident = $file:literal),+ $(,)?) => { $(
        #[doc = include_str!(concat!("../../docs/guide/", $file))]
        struct $name;
    )+ };
}

page!(
    AckModes = "ack-modes.md",
    Axum = "axum.md",
    Batches = "batches.md",
    Broadcast = "broadcast.md",
    ChangingJobs = "changing-jobs.md",
    Inspection = "inspection.md",
    CommandLine = "command-line.md",
    Comparison = "comparison.md",
    Configuration = "configuration.md",
    Dashboard = "dashboard.md",
    Doctor = "doctor.md",
    DeployingOnRedis = "deploying-on-redis.md",
    Events = "events.md",
    Faq = "faq.md",
    FileStore = "file-store.md",
    GettingStarted = "getting-started.md",
    History = "history.md",
    Idempotency = "idempotency.md",
    JsonApi = "json-api.md",
    Groups = "groups.md",
    Limits = "limits.md",
    Logs = "logs.md",
    Metrics = "metrics.md",
    Traces = "traces.md",
    Parking = "parking.md",
    Pausing = "pausing.md",
    Payloads = "payloads.md",
    PeriodicJobs = "periodic-jobs.md",
    Priorities = "priorities.md",
    Promises = "promises.md",
    Retries = "retries.md",
    Testing = "testing.md",
    Troubleshooting = "troubleshooting.md",
    WebAndWorker = "web-and-worker.md",
);

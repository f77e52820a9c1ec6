//! The table of the settings: each row is one setting, and everything else that dq does with it comes from here.
//!
//! A row has the doc, the name, the type, the default and, where there are any, the range and an example for the attribute of a
//! listener. A setting with an example may stand in `#[delay_listener(..)]`; each one may stand in the builder, the config file and
//! the environment. Rules between settings stand in `dq::config`. A table hands its rows to the macro that it is called with.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A millisecond.
pub const MS: Duration = Duration::from_millis(1);
/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
/// A minute.
pub const MINUTE: Duration = Duration::from_secs(60);
/// An hour.
pub const HOUR: Duration = Duration::from_secs(3600);
/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// The settings of a node.
#[doc(hidden)]
#[macro_export]
macro_rules! node_settings {
    ($reader:ident $($argument:tt)*) => { $reader! { $($argument)*
        /// How long a lease lasts. When a node dies, others take its jobs after this time and then one and a half times
        /// [`heartbeat_interval`](Self::heartbeat_interval), or longer if `call_timeout` is more than two fifths of `heartbeat_interval`.
        lease: [Duration] = 15 * SECOND, in 100 * MS..=5 * MINUTE;
        /// How often a node renews a lease that no other step renews. At most a third of [`lease`](Self::lease).
        heartbeat_interval: [Duration] = 5 * SECOND, in MS..=100 * SECOND;
        /// How often a node looks for due jobs without a signal; after a signal, minus a random part of up to a fifth. It repairs
        /// lost signals.
        poll_interval: [Duration] = 15 * SECOND, in 10 * MS..=HOUR;
        /// How long handlers may keep running at shutdown, before dq cancels them and their jobs go back. Zero cancels them
        /// immediately.
        shutdown_grace: [Duration] = 25 * SECOND, in Duration::ZERO..=HOUR;
        /// How many handlers of all topics together run at the same time on this node, beside the `concurrency` of each topic. Each
        /// topic keeps one permit, so there may be as many handlers as topics. The topics share the others: while several want
        /// more than there are, each gets equally many. Broadcast listeners need no permit.
        node_concurrency: [Option<usize>] = None, in 1..=1_000_000;
        /// Whether a stopping node gives its jobs back itself. With `false` it ends its lease and leaves the jobs: the next node that
        /// scans the leases reclaims them and charges no crash.
        #[doc(alias = "crash_rollback")]
        rollback_on_shutdown: [bool] = true;
        /// How long a request may wait for its answer. At most [`lease`](Self::lease) minus [`heartbeat_interval`](Self::heartbeat_interval).
        call_timeout: [Duration] = 2 * SECOND, in MS..=4 * MINUTE;
        /// How long an add or a command may take, including its repeats. At least [`call_timeout`](Self::call_timeout).
        call_deadline: [Duration] = 10 * SECOND, in MS..=HOUR;
        /// When the store may answer an add or a command: when it has done it (`local`); on Redis, when that many replicas have it too
        /// (`wait(1, 500ms)`), which protects it from a failover to a replica that lags; on `file:`, after a sync (`sync`) or before
        /// one within an interval (`interval:50ms`). A store that the program makes gets its durability there.
        durability: [Durability] = Durability::Local;
        /// How long after its due time dq drops a broadcast that no node published.
        broadcast_expires_after: [Duration] = HOUR, in MS..=MAX_DELAY;
        /// How long a broadcast listener may take for one broadcast before dq drops the call and goes on to the next one.
        broadcast_timeout: [Duration] = 30 * SECOND, in MS..=HOUR;
        /// The longest payload, in bytes.
        max_payload: [usize] = 256 * 1024, in 1..=16 * 1024 * 1024;
        /// How many adds and commands of a provider may wait for an answer; further callers wait for a free place.
        max_in_flight: [usize] = 10_000, in 1..=1_000_000;
        /// How many bytes the unanswered adds and commands of a provider may have, over all its topics; further callers wait. One
        /// request, or one `add_many`, that is larger passes alone.
        max_in_flight_bytes: [usize] = 64 * 1024 * 1024, in 1..=1024 * 1024 * 1024;
        /// How many bytes of memory the jobs of a `file:` store may take, as the store counts it: further adds, imports and growing
        /// updates are refused, outcomes and ticks never. Otherwise three quarters of what the machine or the container has.
        max_memory: [Option<usize>] = None, in 1024 * 1024..=usize::MAX;
        /// How many jobs may wait in the `buffer` of a provider while the store is away; further adds fail.
        buffer_limit: [usize] = 1_000_000, in 1..=100_000_000;
        /// How many bytes these jobs may have.
        buffer_bytes: [usize] = 256 * 1024 * 1024, in 1024 * 1024..=1024 * 1024 * 1024 * 1024;
        /// After how long in the buffer a job is dropped, with a line in the log, because the store was away for so long.
        buffer_age: [Duration] = 7 * DAY, in SECOND..=MAX_DELAY;
    } };
}

/// The settings of a topic.
#[doc(hidden)]
#[macro_export]
macro_rules! topic_settings {
    ($reader:ident $($argument:tt)*) => { $reader! { $($argument)*
        /// How many handlers run at the same time on one node.
        concurrency: [usize] = 64, in 1..=100_000, attribute "64";
        /// How many jobs of the topic run at the same time on all nodes together. Without it, as many as the nodes run. It holds for
        /// leases: a handler that runs beyond the lease of its node may still run while another takes its place. A node then claims no
        /// more than it can start. `set_limit` overrides it on all nodes. Not with `ack = "on_claim"`.
        cluster_concurrency: [Option<usize>] = None, in 1..=1_000_000, attribute "10";
        /// How many jobs of the topic all nodes together start within a period, such as `"100/s"`, `"1000/h"` or `"100/s, burst 20"`: no more
        /// in any such period of the store's clock, spaced evenly but for the burst. Each claim counts: first runs, retries, rejoins and
        /// `on_park_timeout`. A node then claims no more than it can start. `set_limit` overrides it on all nodes.
        rate: [Option<Rate>] = None, attribute "\"100/s\"";
        /// How many jobs of one group run at the same time on all nodes together, such as 1 for each customer; a job says its group when it is
        /// added. Without it groups have no effect. `set_limit` overrides it on all nodes. Not with `ack = "on_claim"`.
        group_concurrency: [Option<usize>] = None, in 1..=100, attribute "1";
        /// How many more jobs of one group run while no other job of the topic is due and a node has a free permit. Not where
        /// `group_concurrency` is 1. `set_limit` overrides it on all nodes.
        group_burst: [usize] = 0, in 0..=100, attribute "4";
        /// How many jobs of each group all nodes together start within a period, such as `"10/s"` for each customer; otherwise as `rate`. Without it
        /// groups have no rate. `set_limit` overrides it on all nodes.
        group_rate: [Option<Rate>] = None, attribute "\"10/s\"";
        /// Whether a group waits for a job of it that did not end, or lets other jobs pass: `wait` or `pass` for each cause, which are `retry`,
        /// `rejoin`, `park` and `dead`. By default it waits for retries. A job that goes back without an outcome is always waited for.
        group_on_blocked: [OnBlocked] = OnBlocked::default(), attribute "\"retry: pass, dead: wait\"";
        /// For how much longer a due job may have waited that a job of the next higher priority still overtakes. A job two priorities lower
        /// may have waited twice as long. So no job starves. Zero: priorities have no effect.
        priority_ageing: [Duration] = 10 * MINUTE, in Duration::ZERO..=MAX_DELAY, attribute "\"10m\"";
        /// How long a handler may run before dq drops it, including `on_exhausted` and `on_park_timeout`. Zero or `"none"`: no limit.
        timeout: [Option<Duration>] = Some(30 * SECOND), in MS..=MAX_DELAY, attribute "\"5s\"";
        /// What happens after a timeout: `"retry"`, as after any failure, or `"immediate"`, the next attempt without a delay.
        on_timeout: [OnTimeout] = OnTimeout::Retry, attribute "\"retry\"";
        /// After how long the node warns, once for each run, that a handler is still running. It drops nothing, and has no effect where
        /// `timeout` is no longer. Zero or `"none"`: no warning.
        slow_warning: [Option<Duration>] = None, in MS..=MAX_DELAY, attribute "\"10s\"";
        /// When a failed job runs again: a policy such as `"none"`, `"30s x 5"`, `"1m, 5m, 1h"` or
        /// `"exponential 10s x 5, factor 3, max 1h, jitter 10%"`, which is the default. The policy of an add overrides it.
        retry: [RetryPolicy] = RetryPolicy::default(), attribute "\"1m, 5m, 10m\"";
        /// When dq acks a job: `"on_return"` (the job runs at least once) or `"on_claim"` (before the handler starts: the job runs at
        /// most once, without retry, and a node that dies loses the jobs it holds).
        ack: [AckMode] = AckMode::OnReturn, attribute "\"on_return\"";
        /// How often a job may kill its node before dq gives it up. dq never gives up a job that only ran beside others, so it may
        /// need up to two more crashes until it knows which job kills.
        max_crashes: [u32] = 3, in 1..=1_000, attribute "3";
        /// How long a job is UNACKED before dq calls `on_park_timeout`.
        park_timeout: [Duration] = 7 * DAY, in MS..=MAX_DELAY;
        /// How long the store keeps DEAD jobs.
        dead_retention: [Duration] = 30 * DAY, in MS..=MAX_DELAY;
        /// How many DEAD jobs the store keeps; it removes the oldest first.
        dead_max: [usize] = 100_000, in 1..=10_000_000;
        /// How many DONE jobs the store keeps, whatever their `retain`: it removes those first whose `retain` ends first. Without it, each
        /// stays for its `retain`.
        done_max: [Option<usize>] = None, in 1..=10_000_000;
        /// How long before its due time this node may claim a job, in whole milliseconds. Its handler then starts when the job is due,
        /// never earlier, and not after the trip to the store. Within that time the job already counts as running: a delete or cancel
        /// takes effect, but if it comes while the handler starts, the job runs.
        lookahead: [Duration] = Duration::ZERO, in Duration::ZERO..=50 * MS;
        /// How late jobs may start before `health()` reports the topic as degraded: if more than one in a hundred of the last minute
        /// starts later. Zero or `"none"`: dq does not check.
        lateness_objective: [Option<Duration>] = None, in MS..=MAX_DELAY;
        /// How many of its moves the topic keeps of each job, the newest. Zero: none, and the topic forgets the moves it has. Without
        /// this setting the topic stays as it is. It holds for all nodes and producers of the topic, and costs memory of the store
        /// and time of its steps: the guide says how much.
        history_max: [Option<usize>] = None, in 0..=100, attribute "20";
        /// For how long the topic keeps the history of a job after its end, so that `why` can report what became of it. Zero: the
        /// history goes with the job. Needs `history_max`.
        history_retention: [Duration] = Duration::ZERO, in Duration::ZERO..=30 * DAY, attribute "\"1d\"";
        /// How many jobs a batch has at most, for a listener that takes a `Batch`. A struct with this key implements `BatchListener`.
        batch_size: [usize] = 100, in 1..=1_000, attribute "500";
        /// How many bytes the records of a batch have at most. A larger job is a batch of its own.
        batch_bytes: [usize] = 1024 * 1024, in 1..=16 * 1024 * 1024;
        /// Whether the store counts, minute by minute for a day, what this node claims, how late, and how the runs end: what
        /// `Inspector::run_stats`, `dq timeline` and the dashboard show. Each step that claims or settles then costs up to two more commands
        /// on Redis.
        statistics: [bool] = false, attribute "true";
    } };
}

/// A setting that an attribute takes.
#[derive(Debug)]
pub struct AttributeKey {
    /// Its name.
    pub name: &'static str,
    /// How to write it, for messages; `None`: the attribute does not take it.
    pub example: Option<&'static str>,
    /// What its value must be.
    pub kind: Kind,
}

/// What the value of a key must be.
#[derive(Debug)]
pub enum Kind {
    /// A whole number within this range.
    Number(RangeInclusive<u32>),
    /// A duration.
    Time,
    /// A duration, or `"none"`.
    Limit,
    /// `true` or `false`.
    Flag,
    /// A retry policy.
    Retry,
    /// A rate, or `"none"`.
    Rate,
    /// What blocks a group.
    Blocked,
    /// One of these texts.
    Choice(&'static [&'static str]),
}

macro_rules! kind {
    ([Duration] $range:expr) => {
        Kind::Time
    };
    ([Option<Duration>] $range:expr) => {
        Kind::Limit
    };
    ([Option<Rate>]) => {
        Kind::Rate
    };
    ([$($number:tt)+] $range:expr) => {
        Kind::Number($range)
    };
    ([bool]) => {
        Kind::Flag
    };
    ([RetryPolicy]) => {
        Kind::Retry
    };
    ([OnTimeout]) => {
        Kind::Choice(&["retry", "immediate"])
    };
    ([OnBlocked]) => {
        Kind::Blocked
    };
    ([AckMode]) => {
        Kind::Choice(&["on_return", "on_claim"])
    };
}

macro_rules! attribute_keys {
    ($($(#[$doc:meta])+ $name:ident: [$($type:tt)+] = $default:expr $(, in $range:expr)? $(, attribute $example:literal)?;)+) => {
        /// Every setting of a topic; the attribute of a listener takes those with an example.
        pub const ATTRIBUTE_KEYS: &[AttributeKey] = &[$(
            AttributeKey {
                name: stringify!($name),
                example: [$(Some(concat!(stringify!($name), " = ", $example)),)? None][0],
                kind: kind!([$($type)+] $($range)?),
            },
        )+];
    };
}
topic_settings!(attribute_keys);

/// The rows of the settings in the documentation of an attribute, as one text.
#[doc(hidden)]
#[macro_export]
macro_rules! attribute_rows {
    ($($(#[doc = $doc:literal])+ $name:ident: [$($type:tt)+] = $default:expr $(, in $range:expr)? $(, attribute $example:literal)?;)+) => {
        concat!($($crate::attribute_rows!(@ [$($example)?] $name [$($doc)+] $default $(, $range)?)),+)
    };
    (@ [] $($setting:tt)+) => { "" };
    (@ [$example:literal] $name:ident [$($doc:literal)+] $default:expr $(, $range:expr)?) => {
        concat!(
            "| `", stringify!($name), " = ", $example, "` |", $($doc,)+ $(" Range `", stringify!($range), "`.",)?
            " | `", stringify!($default), "` |\n"
        )
    };
}

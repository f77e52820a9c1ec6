//! What is wrong with a call, so that it is not sent.

use std::time::Duration;

use humantime::format_duration;

use crate::job::{InvalidName, InvalidValue, JobId, OverLimit, TopicName};
use crate::time::MAX_DELAY;

/// What is wrong with a call that was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The name of the topic or of the schedule, or the id, is not valid.
    #[error(transparent)]
    InvalidName(#[from] InvalidName),
    /// The payload cannot be serialized; or it has a value that JSON cannot hold, such as `NaN`, and the text names its field; or
    /// the text of an untyped call is not JSON.
    #[error("the payload of topic `{topic}` is not JSON, or cannot be written as JSON: {source}")]
    BadPayload {
        /// The topic.
        topic: TopicName,
        /// The error of serde.
        source: serde_json::Error,
    },
    /// The payload is too large; keep large data elsewhere and put its key in the payload.
    #[error("the payload of topic `{topic}` has {size} bytes; the limit is {limit} (`max_payload`)")]
    PayloadTooLarge {
        /// The topic.
        topic: TopicName,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A header, a payload of a schedule or another part of the job is over a limit of the format.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// A text is over its limit.
    #[error("{what} is {size}; the {} is {limit}", if .size < .limit { "least" } else { "limit" })]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The call has too many jobs or changes; split it.
    #[error("the batch has {size} {what}; the limit is {limit}")]
    BatchTooLarge {
        /// `jobs` or `changes`.
        what: &'static str,
        /// How many the call has; at most a million above the limit are counted.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// An earlier job of the same call has this id.
    #[error("the id `{id}` is in the batch twice; only the first one is sent")]
    RepeatedInBatch {
        /// The id.
        id: JobId,
    },
    /// A text is not a duration.
    #[error("`{field}`: {source}")]
    BadDuration {
        /// Which, as its method is called.
        field: &'static str,
        /// What is wrong with it.
        source: InvalidValue,
    },
    /// A duration is over the limit, or a time is too far away.
    #[error("`{field}` is {}; the limit is {}", in_days(*.delay), in_words(*.limit))]
    TooLong {
        /// Which, as its method is called.
        field: &'static str,
        /// How long it is.
        delay: Duration,
        /// The limit.
        limit: Duration,
    },
    /// A duration is too short or too long: `within` of a call, or `every` of a schedule.
    #[error("`{field}`: {} is out of its range: {range}", format_duration(*.given))]
    OutOfRange {
        /// Which.
        field: &'static str,
        /// How long it is.
        given: Duration,
        /// What is allowed, in words.
        range: &'static str,
    },
    /// The limit of [`add_or_extend`](super::Provider::add_or_extend) is below its delay.
    #[error("`at_most` is {}, less than `after`, which is {}", format_duration(*.at_most), format_duration(*.after))]
    LimitBelowDelay {
        /// The delay.
        after: Duration,
        /// The limit.
        at_most: Duration,
    },
    /// [`add_or_extend`](super::Provider::add_or_extend), or an add with [`unique_for`](super::Call::unique_for), got a job without an id. A
    /// generated id is no other's.
    #[error("the job of topic `{topic}` has no id, and {needs}: mark a field with `#[job(id)]`, or call `.id(..)`")]
    NoId {
        /// The topic.
        topic: TopicName,
        /// What needs one.
        needs: &'static str,
    },
    /// The name of the group is not valid.
    #[error("`group`: {0}")]
    BadGroup(#[source] InvalidValue),
    /// The weight is not valid.
    #[error("`weight`: {0}")]
    BadWeight(#[source] InvalidValue),
    /// The retry policy cannot be read.
    #[error("`retry`: {0}")]
    BadRetry(#[source] InvalidValue),
    /// A pause or a drain needs a reason.
    #[error("{what} needs a reason")]
    NoReason {
        /// What needs it.
        what: String,
    },
    /// A broadcast is not a member of a job set, nor its last job.
    #[error("a job set takes no broadcasts, and the jobs of topic `{topic}` are broadcasts")]
    NotInASet {
        /// The topic of the job.
        topic: TopicName,
    },
    /// A schedule has no ticks.
    #[error(
        "the schedule `{name}` does not say when: write `.every(\"1h\")` or, with the feature `cron`, `.cron(\"0 9 * * *\", \"UTC\")`"
    )]
    NoTicks {
        /// The name.
        name: String,
    },
    /// A schedule has no tick left between its start and its end.
    #[error("the schedule `{name}` has no tick from now on: look at its start and its end")]
    NeverTicks {
        /// The name.
        name: String,
    },
    /// The payload of a schedule of the code cannot be made.
    #[error("the schedule `{name}`: {reason}")]
    NoPayload {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The cron line or the time zone is not valid.
    #[cfg(feature = "cron")]
    #[error(transparent)]
    Cron(#[from] crate::schedule::InvalidCron),
}

/// Writes a limit as text.
fn in_words(limit: Duration) -> String {
    if limit == MAX_DELAY { "ten years (3650d)".to_owned() } else { in_days(limit) }
}

/// Writes a duration in days. `format_duration` would write eleven months and some days for a little more than ten years.
fn in_days(time: Duration) -> String {
    const DAY: u64 = 86_400;
    let (days, rest) = (time.as_secs() / DAY, Duration::new(time.as_secs() % DAY, time.subsec_nanos()));
    match (days, rest.is_zero()) {
        (0, _) => format_duration(time).to_string(),
        (days, true) => format!("{days}d"),
        (days, false) => format!("{days}d {}", format_duration(rest)),
    }
}

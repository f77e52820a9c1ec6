//! The errors of calls that concern a whole topic.

use std::time::Duration;

use humantime::format_duration;

use super::error::{Reason, in_words};
use crate::job::{BadName, TopicName};
use crate::time::BadDuration;

/// Why a topic was not paused, drained or given a default delay, or why it is unknown whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The name of the topic is not valid. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// A pause or a drain needs a reason. Nothing was sent: write `.reason("..")`.
    #[error("a pause or a drain of topic `{topic}` needs a reason: write `.reason(\"..\")`")]
    NoReason {
        /// The topic.
        topic: TopicName,
    },
    /// A text is over its limit. Nothing was sent.
    #[error("{what} is {size}, {limit} are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// A text is not a duration. Nothing was sent.
    #[error("`{field}`: {source}")]
    BadDuration {
        /// Which: `lasting`, `delay` or `within`.
        field: &'static str,
        /// What is wrong with it.
        source: BadDuration,
    },
    /// A duration is over the limit. Nothing was sent.
    #[error("`{field}` is {}, {} is the limit", format_duration(*.delay), in_words(*.limit))]
    TooLong {
        /// Which: `lasting` or `delay`.
        field: &'static str,
        /// How long it is.
        delay: Duration,
        /// The limit.
        limit: Duration,
    },
    /// The store did nothing, and will do nothing later.
    #[error("topic `{topic}` was not changed: {reason}")]
    NotDone {
        /// The topic.
        topic: TopicName,
        /// Why.
        #[source]
        reason: Reason,
    },
    /// The store may have changed the topic, or may still do so. Calling again is safe.
    #[error("it is not known whether topic `{topic}` was changed: {reason}")]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// Why it is unknown.
        #[source]
        reason: Reason,
    },
    /// The provider was closed before it could send the call. Nothing was done.
    #[error("topic `{topic}` was not changed: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
    },
}

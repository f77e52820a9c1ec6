//! The errors of a change.

use std::fmt;
use std::time::Duration;

use humantime::format_duration;

use super::error::{Reason, in_words};
use super::limit::BadWithin;
use crate::job::{BadName, JobId, State, TopicName};
use crate::time::BadDuration;

/// Why a job was not changed, or why it is unknown whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The name of the topic or the id is not valid. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// A text is not a duration. Nothing was sent.
    #[error("`{field}`: {source}")]
    BadDelay {
        /// Which: `when` or `extend_by`.
        field: &'static str,
        /// What is wrong with it.
        source: BadDuration,
    },
    /// `within` is no duration, or out of its range. Nothing was sent.
    #[error("`within`: {0}")]
    BadWithin(BadWithin),
    /// A duration is over the limit, or a time is too far away. Nothing was sent.
    #[error("`{field}` is {}, {} is the limit", format_duration(*.delay), in_words(*.limit))]
    DelayTooLong {
        /// Which: `when` or `extend_by`.
        field: &'static str,
        /// How long it is.
        delay: Duration,
        /// The limit.
        limit: Duration,
    },
    /// The payload cannot be serialized, or the text of an untyped update is not JSON. Nothing was sent; fix the payload.
    #[error("the payload of topic `{topic}` is not JSON, or cannot be written as JSON: {source}")]
    BadPayload {
        /// The topic.
        topic: TopicName,
        /// The error of serde.
        #[source]
        source: serde_json::Error,
    },
    /// The payload is too large. Nothing was sent; keep large data elsewhere and put its key in the payload.
    #[error("the payload of topic `{topic}` is {size} bytes, {limit} are allowed (`payload_limit`)")]
    PayloadTooLarge {
        /// The topic.
        topic: TopicName,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The call has too many changes. Nothing was sent; split it.
    #[error("the call has more than {limit} changes")]
    BatchTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The store did not change the job, which is as it was.
    #[error("job `{id}` of topic `{topic}` was not changed: {refusal}")]
    Refused {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why.
        refusal: ChangeRefusal,
    },
    /// Nothing was changed and nothing will be. You can call again at any time.
    #[error("job `{id}` of topic `{topic}` was not changed: {reason}")]
    NotDone {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why.
        #[source]
        reason: Reason,
    },
    /// The job may have been changed, or may still be. Calling again with [`if_version`](super::ChangeJob::if_version) is safe; so is
    /// any repeat but that of `extend_by`, which could extend twice.
    #[error("it is not known whether job `{id}` of topic `{topic}` was changed: {reason}")]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why it is unknown.
        #[source]
        reason: Reason,
    },
    /// The provider was closed before it could send the change. Nothing was changed.
    #[error("job `{id}` of topic `{topic}` was not changed: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
    },
}

impl ChangeError {
    /// Why the store did not change the job, if that is the error.
    pub(super) const fn refusal(&self) -> Option<ChangeRefusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            _ => None,
        }
    }
}

/// Why a store did not change a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeRefusal {
    /// There is no such job.
    NoSuchJob,
    /// No job in this state can be changed so.
    State(State),
    /// The job has this version, and the change named another.
    OtherVersion(u32),
    /// The job was changed 4,294,967,295 times, and its version cannot grow.
    LastVersion,
}

impl fmt::Display for ChangeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchJob => f.write_str("there is no such job"),
            Self::State(State::Running) => f.write_str(
                "it is running, and its run decides what comes next; an add with `.replace_existing()` runs it again after that",
            ),
            Self::State(State::Done) => f.write_str("it is done; add it again"),
            Self::State(state) => write!(f, "it is {state} and waits for no time; `requeue` runs it now"),
            Self::OtherVersion(version) => write!(f, "its version is {version}"),
            Self::LastVersion => {
                f.write_str("its version cannot grow any more; add it again with `.replace_existing()`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let said = [State::Running, State::Unacked, State::Dead, State::Done].map(|state| {
            let (topic, id) = (TopicName::new("t").unwrap(), JobId::new("7").unwrap());
            ChangeError::Refused { topic, id, refusal: ChangeRefusal::State(state) }.to_string()
        });
        for (text, what) in said.iter().zip(["replace_existing", "requeue", "requeue", "add it again"]) {
            assert!(text.starts_with("job `7` of topic `t` was not changed: it is") && text.contains(what), "{text}");
        }
    }
}

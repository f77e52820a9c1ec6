//! What can go wrong, whether anything was done, and what the caller should do.
//!
//! *Certain* and *unknown* are different errors (PROTOCOL.md rule 18): a request without an answer may have been executed,
//! or may still be.

use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

use crate::job::{BadName, BadRetry, JobId, State, TopicName};
use crate::store::StoreError;
use crate::time::{BadDuration, LONGEST_DELAY};

/// Ten years are not whole calendar years to a formatter of durations.
fn in_words(limit: Duration) -> String {
    if limit == LONGEST_DELAY { "ten years".to_owned() } else { format_duration(limit).to_string() }
}

/// What to write when the id is known.
const fn instead(state: State) -> &'static str {
    match state {
        State::Dead => "`.keep_existing()` leaves it, `.replace_existing()` replaces it, `requeue` runs it again",
        _ => "`.keep_existing()` leaves it, `.replace_existing()` replaces it",
    }
}

/// Why something was not done, or why it is not known whether it was.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// What the store said last.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The store refuses this job alone, and why.
    #[error("the store refuses it: {0}")]
    Refused(String),
    /// The store did not answer until the time was over.
    #[error("the store did not answer within {} (`call_total`)", format_duration(*.waited))]
    NoAnswer {
        /// How long was waited.
        waited: Duration,
    },
    /// The time was over before it could be sent, because earlier requests had no answer yet; at the most
    /// `unanswered_limit` are sent at a time.
    #[error("it could not be sent within {} (`call_total`), earlier requests have no answer", format_duration(*.waited))]
    NeverSent {
        /// How long was waited.
        waited: Duration,
    },
    /// The provider was stopped meanwhile.
    #[error("the provider was stopped")]
    Stopped,
}

/// A job was not added, or it is not known whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The payload cannot be serialized, or the text of an untyped add is no JSON. Nothing was sent; mend the payload.
    #[error("the payload of topic `{topic}` is no JSON, or cannot be written as JSON: {source}")]
    BadPayload {
        /// The topic.
        topic: TopicName,
        /// What serde said.
        #[source]
        source: serde_json::Error,
    },
    /// The payload is over the limit. Nothing was sent; keep large data elsewhere and its key in the payload.
    #[error("the payload of topic `{topic}` is {size} bytes, {limit} are allowed (`payload_limit`)")]
    PayloadTooLarge {
        /// The topic.
        topic: TopicName,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The headers are over the limit. Nothing was sent.
    #[error("the headers are {size} bytes, 4 for each header included, {limit} are allowed")]
    HeadersTooLarge {
        /// Their size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The topic or the id cannot be one. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// A text that was given as a duration is not one. Nothing was sent.
    #[error("`{field}`: {source}")]
    BadDelay {
        /// Which: `after`, `expires_after` or `retain`.
        field: &'static str,
        /// What is wrong.
        source: BadDuration,
    },
    /// A duration is over the limit, or `at` is further away. Nothing was sent.
    #[error("`{field}` is {}, {} is the limit", format_duration(*.delay), in_words(*.limit))]
    DelayTooLong {
        /// Which: `after`, `at`, `expires_after` or `retain`.
        field: &'static str,
        /// How long it is.
        delay: Duration,
        /// The limit.
        limit: Duration,
    },
    /// The retry policy cannot be read. Nothing was sent.
    #[error("`retry`: {0}")]
    BadRetry(#[from] BadRetry),
    /// A batch is over the limit. Nothing of it was sent; split it.
    #[error("the batch has {size} jobs, {limit} are allowed")]
    BatchTooLarge {
        /// How many jobs it has; not counted further than a million.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// An earlier job of the same batch has this id. This one was not sent.
    #[error("the id `{id}` is in the batch twice, the first one counts")]
    RepeatedInBatch {
        /// The id.
        id: JobId,
    },
    /// The id is known and neither `keep_existing` nor `replace_existing` was asked for. The old job is untouched.
    #[error("job `{id}` of topic `{topic}` exists and is {state}: {}", instead(*.state))]
    AlreadyExists {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Where the old one is.
        state: State,
    },
    /// It is certain that the job was not added and will not be. Add it again when you like.
    #[error("job `{id}` of topic `{topic}` was not added: {reason}")]
    NotAdded {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why.
        #[source]
        reason: Reason,
    },
    /// The job may have been added, or may still be. Adding it again under the same id with `keep_existing` is safe.
    #[error("it is not known whether job `{id}` of topic `{topic}` was added: {reason}")]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The id, also where it was generated.
        id: JobId,
        /// What is known.
        #[source]
        reason: Reason,
    },
    /// The provider was closed before the job could be sent. It was not added.
    #[error("job `{id}` of topic `{topic}` was not added: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
    },
}

/// A delete, cancel, ack or requeue was not done, or it is not known whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The topic or the id cannot be one. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// It is certain that nothing was done and nothing will be. Call again when you like.
    #[error("nothing was done to job `{id}` of topic `{topic}`: {reason}")]
    NotDone {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why.
        #[source]
        reason: Reason,
    },
    /// It may have been done, or may still be. Calling again is safe, unless a new job was added under the id meanwhile.
    #[error("it is not known what was done to job `{id}` of topic `{topic}`: {reason}")]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// What is known.
        #[source]
        reason: Reason,
    },
    /// The provider was closed before it could be sent. Nothing was done.
    #[error("nothing was done to job `{id}` of topic `{topic}`: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
    },
}

/// A look at jobs failed. Looks change nothing: try again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The topic or an id cannot be one.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The store failed, also when asked again until `call_total`.
    #[error("topic `{topic}` cannot be looked at: {source}")]
    Store {
        /// The topic.
        topic: TopicName,
        /// What it said last.
        source: StoreError,
    },
    /// dq's own thread is gone.
    #[error("topic `{topic}` cannot be looked at: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
    },
}

/// A page could not be requeued or deleted as a whole. The same call goes on with what is left of the page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The page could not be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// One of its jobs could not be withdrawn; others of the page may have been.
    #[error(transparent)]
    SendCommand(#[from] CommandError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exists(state: State) -> String {
        let (topic, id) = (TopicName::new("t").unwrap(), JobId::new("7").unwrap());
        AddError::AlreadyExists { topic, id, state }.to_string()
    }

    #[test]
    fn a_known_id_says_how_to_go_on() {
        assert!(exists(State::Delayed).ends_with("`.keep_existing()` leaves it, `.replace_existing()` replaces it"));
        assert!(exists(State::Dead).ends_with("`requeue` runs it again"));
    }

    #[test]
    fn the_longest_delay_is_said_in_words() {
        let delay = Duration::from_secs(1_000_000_000);
        let text = AddError::DelayTooLong { field: "after", delay, limit: LONGEST_DELAY }.to_string();
        assert!(text.ends_with("ten years is the limit"), "{text}");
    }

    #[test]
    fn a_text_that_is_no_json_says_where() {
        let source = serde_json::from_str::<serde_json::Value>("{oops").unwrap_err();
        let error = AddError::BadPayload { topic: TopicName::new("t").unwrap(), source };
        assert!(error.to_string().contains("is no JSON") && error.to_string().ends_with("line 1 column 2"), "{error}");
        assert_eq!(crate::Error::from(error).to_string().matches("column 2").count(), 1);
    }
}

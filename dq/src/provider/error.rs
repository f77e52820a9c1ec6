//! The errors of a provider: what went wrong, whether the store did anything, and what the caller can do.
//!
//! *Not done* and *unknown* are different errors (rule 18): the store may have executed a request without an answer, or may
//! still execute it.

use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

use super::limit::BadWithin;
use crate::job::{BadName, BadRetry, JobId, State, TopicName};
use crate::store::StoreError;
use crate::time::{BadDuration, LONGEST_DELAY};

/// Writes a limit as text. `format_duration` would write ten years as years, months and days.
pub(super) fn in_words(limit: Duration) -> String {
    if limit == LONGEST_DELAY { "ten years".to_owned() } else { format_duration(limit).to_string() }
}

/// What to write instead if a job with the id exists.
const fn instead(state: State) -> &'static str {
    match state {
        State::Dead => "`.keep_existing()` leaves it, `.replace_existing()` replaces it, `requeue` runs it again",
        _ => "`.keep_existing()` leaves it, `.replace_existing()` replaces it",
    }
}

fn unchanged(found: Option<State>) -> String {
    found.map_or_else(|| "there is no such job".to_owned(), |state| format!("it is {state}, or in another run"))
}

/// Why a request was not done, or why its result is unknown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// An error of the store: the last one; if the result is unknown, the last one that leaves it open.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The store refused this job alone, for this reason.
    #[error("the store refuses it: {0}")]
    Refused(String),
    /// The store did not answer in time.
    #[error("the store did not answer within {} (`{limit}`)", format_duration(*.waited))]
    NoAnswer {
        /// How long the provider waited.
        waited: Duration,
        /// What says how long: `within` of the call, or the setting `call_total`.
        limit: &'static str,
    },
    /// The provider sent the request more than once. The store did not answer one of them, and did nothing for the later ones.
    #[error(
        "the store did not answer when it was first sent, and may have done it then; it did nothing when it was sent again"
    )]
    Unanswered,
    /// The provider could not send the request in time, because earlier requests had no answer; at most `unanswered_limit`
    /// requests of `unanswered_bytes` are unanswered at a time.
    #[error("it could not be sent within {} (`{limit}`), earlier requests have no answer", format_duration(*.waited))]
    NeverSent {
        /// How long the request waited.
        waited: Duration,
        /// What says how long: `within` of the call, or the setting `call_total`.
        limit: &'static str,
    },
    /// The provider was stopped before the request had an answer.
    #[error("the provider was stopped")]
    Stopped,
    /// The task of the provider that had the request panicked. That is a defect of dq; the task has started again.
    #[error("dq panicked; please report this as a bug")]
    Panicked,
}

/// Why a job was not added, or why it is unknown whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The payload cannot be serialized; or it has a value that JSON cannot hold, such as `NaN`, and the text names its field; or
    /// the text of an untyped add is not JSON. Nothing was sent; fix the payload.
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
    /// The headers are too large. Nothing was sent.
    #[error("the headers are {size} bytes, 4 for each header included, {limit} are allowed")]
    HeadersTooLarge {
        /// Their size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The name of the topic or the id is not valid. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// A text is not a duration. Nothing was sent.
    #[error("`{field}`: {source}")]
    BadDelay {
        /// Which: `after`, `at_most`, `expires_after` or `retain`.
        field: &'static str,
        /// What is wrong with it.
        source: BadDuration,
    },
    /// `within` is not a duration, or is out of its range. Nothing was sent.
    #[error("`within`: {0}")]
    BadWithin(BadWithin),
    /// A duration is over the limit, or `at` is too far away. Nothing was sent.
    #[error("`{field}` is {}, {} is the limit", format_duration(*.delay), in_words(*.limit))]
    DelayTooLong {
        /// Which: `after`, `at`, `at_most`, `expires_after` or `retain`.
        field: &'static str,
        /// How long it is.
        delay: Duration,
        /// The limit.
        limit: Duration,
    },
    /// The limit of [`add_or_extend`](super::Provider::add_or_extend) is below its delay. Nothing was sent.
    #[error("`at_most` is {}, less than `by`, which is {}", format_duration(*.at_most), format_duration(*.by))]
    LimitBelowDelay {
        /// The delay.
        by: Duration,
        /// The limit.
        at_most: Duration,
    },
    /// [`add_or_extend`](super::Provider::add_or_extend) got a job without an id, which could extend none. Nothing was sent.
    #[error(
        "the job of topic `{topic}` has no id, so it could extend none: mark a field with `#[job(id)]`, or call `.id(..)`"
    )]
    NoId {
        /// The topic.
        topic: TopicName,
    },
    /// The retry policy cannot be read. Nothing was sent.
    #[error("`retry`: {0}")]
    BadRetry(#[from] BadRetry),
    /// The call has too many jobs. Nothing was sent; split it.
    #[error("the batch has {size} jobs, {limit} are allowed")]
    BatchTooLarge {
        /// How many jobs the call has; at most a million above the limit are counted.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// An earlier job of the same call has this id. This one was not sent.
    #[error("the id `{id}` is in the batch twice, the first one counts")]
    RepeatedInBatch {
        /// The id.
        id: JobId,
    },
    /// Some jobs of one call failed; the others were added. Only from [`all`](super::AddedMany::all).
    #[error("{failed} of the {jobs} jobs of the call failed; the first: {first}")]
    SomeFailed {
        /// How many failed.
        failed: usize,
        /// How many jobs the call has.
        jobs: usize,
        /// The error of the first that failed.
        #[source]
        first: Box<AddError>,
    },
    /// A job with this id exists, and the call has neither `keep_existing` nor `replace_existing`. The old job is
    /// untouched.
    #[error("job `{id}` of topic `{topic}` exists and is {state}: {}", instead(*.state))]
    AlreadyExists {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// The state of the old job.
        state: State,
    },
    /// A job with this id exists and waits for no time, so [`add_or_extend`](super::Provider::add_or_extend) has left it as it is.
    #[error(
        "job `{id}` of topic `{topic}` is {state} and waits for no time: `requeue` runs it, `.replace_existing()` replaces it"
    )]
    NotExtended {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// The state of the old job.
        state: State,
    },
    /// The job was not added and will not be. You can add it again at any time.
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
    /// The job may have been added, or may still be. Adding it again with the same id and `keep_existing` is safe.
    #[error(
        "it is not known whether job `{id}` of topic `{topic}` was added (add it again with this id and `.keep_existing()`): {reason}"
    )]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The id, also if it was generated.
        id: JobId,
        /// Why it is unknown.
        #[source]
        reason: Reason,
    },
    /// Somebody drains the topic, so it takes no new jobs. The job was not added. Add it again once the draining has ended.
    #[error("topic `{topic}` drains and takes no new jobs, so job `{id}` was not added: {reason} (by {by})")]
    Draining {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why it drains.
        reason: String,
        /// Who drained it.
        by: String,
    },
    /// The provider was closed before it could send the job. The job was not added.
    #[error("job `{id}` of topic `{topic}` was not added: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
    },
}

impl AddError {
    /// Whether the same add can succeed later, though nobody changes it: the store was out of reach, or full, the topic drains, or the
    /// provider was stopped. An HTTP handler answers 503 to it, and 4xx to any other error.
    ///
    /// After [`Unknown`](Self::Unknown), add with the same id and `keep_existing`.
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Self::NotAdded { reason, .. } => !matches!(reason, Reason::Refused(_)),
            Self::Unknown { .. } | Self::Stopped { .. } | Self::Draining { .. } => true,
            Self::SomeFailed { first, .. } => first.may_be_repeated(),
            Self::BadPayload { .. }
            | Self::PayloadTooLarge { .. }
            | Self::HeadersTooLarge { .. }
            | Self::BadName(_)
            | Self::BadWithin(_)
            | Self::BadDelay { .. }
            | Self::DelayTooLong { .. }
            | Self::BadRetry(_)
            | Self::BatchTooLarge { .. }
            | Self::RepeatedInBatch { .. }
            | Self::LimitBelowDelay { .. }
            | Self::NoId { .. }
            | Self::NotExtended { .. }
            | Self::AlreadyExists { .. } => false,
        }
    }
}

/// Why a delete, cancel, ack or requeue was not done, or why it is unknown whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The name of the topic or the id is not valid. Nothing was sent.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// `within` is not a duration, or is out of its range. Nothing was sent.
    #[error("`within`: {0}")]
    BadWithin(BadWithin),
    /// Nothing was done and nothing will be. You can call again at any time.
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
    /// The store has no such job, or has it in a state or run to which the command does nothing. Only from
    /// [`must_change`](super::AckedOrRequeued::must_change).
    #[error("nothing was done to job `{id}` of topic `{topic}`: {}", unchanged(*.found))]
    Unchanged {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// The state of the job; `None` if there is no such job.
        found: Option<State>,
    },
    /// The command may have been executed, or may still be. Calling again is safe, unless a new job was added under the id
    /// since.
    #[error("it is not known what was done to job `{id}` of topic `{topic}` (call again): {reason}")]
    Unknown {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
        /// Why it is unknown.
        #[source]
        reason: Reason,
    },
    /// The provider was closed before it could send the command. Nothing was done.
    #[error("nothing was done to job `{id}` of topic `{topic}`: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
        /// The id.
        id: JobId,
    },
}

/// Why a query failed. A query changes nothing, so it is safe to repeat.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The name of the topic or the id is not valid.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// `within` is not a duration, or is out of its range. Nothing was sent.
    #[error("`within`: {0}")]
    BadWithin(BadWithin),
    /// The store failed, and repeats within `call_total`, or within the time of the call, failed too.
    #[error("topic `{topic}` cannot be queried: {source}")]
    Store {
        /// The topic.
        topic: TopicName,
        /// Its last error.
        source: StoreError,
    },
    /// The topics of the app cannot be listed: the store failed, and repeats within `call_total` failed too.
    #[error("the topics of the app cannot be listed: {source}")]
    Topics {
        /// Its last error.
        source: StoreError,
    },
    /// The query panicked. That is a defect of dq; further queries work.
    #[error("topic `{topic}` cannot be queried: dq panicked; please report this as a bug")]
    Panicked {
        /// The topic.
        topic: TopicName,
    },
    /// dq's own thread has ended.
    #[error("topic `{topic}` cannot be queried: the provider was stopped")]
    Stopped {
        /// The topic.
        topic: TopicName,
    },
}

/// Why a page was not requeued or deleted as a whole. The same call, made again, continues with the rest of the page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The page could not be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The command for one of its jobs failed; other jobs of the page may have been requeued or deleted.
    #[error(transparent)]
    Command(#[from] CommandError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exists(state: State) -> String {
        let (topic, id) = (TopicName::new("t").unwrap(), JobId::new("7").unwrap());
        AddError::AlreadyExists { topic, id, state }.to_string()
    }

    #[test]
    fn only_an_add_that_the_store_did_not_get_or_take_may_be_repeated() {
        let topic = TopicName::new("t").unwrap();
        let id = || JobId::new("7").unwrap();
        let not_added = |reason| AddError::NotAdded { topic: topic.clone(), id: id(), reason };
        let unknown = || AddError::Unknown { topic: topic.clone(), id: id(), reason: Reason::Unanswered };
        let exists = || AddError::AlreadyExists { topic: topic.clone(), id: id(), state: State::Dead };
        let some = |first| AddError::SomeFailed { failed: 1, jobs: 2, first: Box::new(first) };
        let no_answer = Reason::NoAnswer { waited: Duration::ZERO, limit: "within" };
        let never_sent = Reason::NeverSent { waited: Duration::ZERO, limit: "within" };
        let store = StoreError::NotSent { operation: "add", reason: String::new() };
        let repeat = [
            not_added(Reason::Store(Arc::new(store))),
            not_added(no_answer),
            not_added(never_sent),
            not_added(Reason::Stopped),
            not_added(Reason::Panicked),
            AddError::Stopped { topic: topic.clone(), id: id() },
            some(unknown()),
            unknown(),
        ];
        let give_up = [
            not_added(Reason::Refused("why".into())),
            AddError::BadPayload { topic: topic.clone(), source: serde_json::from_str::<u8>("").unwrap_err() },
            AddError::PayloadTooLarge { topic: topic.clone(), size: 2, limit: 1 },
            AddError::HeadersTooLarge { size: 2, limit: 1 },
            TopicName::new("").unwrap_err().into(),
            AddError::BadDelay { field: "after", source: dq_grammar::parse_duration("soon").unwrap_err() },
            AddError::DelayTooLong { field: "after", delay: LONGEST_DELAY * 2, limit: LONGEST_DELAY },
            "often".parse::<crate::job::RetryPolicy>().unwrap_err().into(),
            AddError::BatchTooLarge { size: 2, limit: 1 },
            AddError::RepeatedInBatch { id: id() },
            some(exists()),
            exists(),
        ];
        for (errors, may) in [(&repeat[..], true), (&give_up, false)] {
            for error in errors {
                assert_eq!(error.may_be_repeated(), may, "{error}");
            }
        }
    }

    #[test]
    fn an_existing_id_says_what_to_write_instead() {
        assert!(exists(State::Delayed).ends_with("`.keep_existing()` leaves it, `.replace_existing()` replaces it"));
        assert!(exists(State::Dead).ends_with("`requeue` runs it again"));
    }

    #[test]
    fn an_unknown_result_says_what_to_do_and_that_the_store_may_have_done_it() {
        let (topic, id) = (TopicName::new("t").unwrap(), JobId::new("7").unwrap());
        let error = AddError::Unknown { topic: topic.clone(), id: id.clone(), reason: Reason::Unanswered };
        let text = crate::Error::from(error).to_string();
        let start = "it is not known whether job `7` of topic `t` was added (add it again with this id and `.keep_existing()`): ";
        assert!(text.starts_with(start) && text.matches("may have done it").count() == 1, "{text}");
        let error = CommandError::Unknown { topic, id, reason: Reason::Unanswered }.to_string();
        assert!(error.contains("topic `t` (call again): "), "{error}");
    }

    #[test]
    fn the_longest_delay_is_written_in_words() {
        let delay = Duration::from_secs(1_000_000_000);
        let text = AddError::DelayTooLong { field: "after", delay, limit: LONGEST_DELAY }.to_string();
        assert!(text.ends_with("ten years is the limit"), "{text}");
    }

    #[test]
    fn a_text_that_is_not_json_says_where_it_is_wrong() {
        let source = serde_json::from_str::<serde_json::Value>("{oops").unwrap_err();
        let error = AddError::BadPayload { topic: TopicName::new("t").unwrap(), source };
        assert!(error.to_string().contains("is not JSON") && error.to_string().ends_with("line 1 column 2"), "{error}");
        assert_eq!(crate::Error::from(error).to_string().matches("column 2").count(), 1);
    }
}

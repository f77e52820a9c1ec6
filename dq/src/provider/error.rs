//! Why a call was not done: what went wrong, whether the store did anything, and what the caller can do.
//!
//! *Not done* and *unknown* are different errors (rule 18): the store may have executed a request without an answer, or may
//! still execute it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use humantime::format_duration;

pub use super::invalid::Invalid;
use super::no_result::NoResult;
use crate::job::{GroupName, JobId, State, TopicName, Weight};
use crate::store::{CommandKind, OnDuplicate, Rate, SetRefusal, StoreError, TooHeavy};

/// Why a call did not do what it was for. Every call of a provider has this error, and its shape says what to do: fix the call
/// ([`Invalid`](Self::Invalid)), look at the job ([`Refused`](Self::Refused)), or call again ([`NotDone`](Self::NotDone),
/// [`Unknown`](Self::Unknown)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call makes no sense. Nothing was sent; fix the call.
    #[error(transparent)]
    Invalid(Invalid),
    /// The store answered that it does not do this, and did nothing.
    #[error("{}", .target.refused(.refusal))]
    Refused {
        /// What the call was about.
        target: Target,
        /// Why.
        refusal: Refusal,
    },
    /// Nothing was done to what the error names, and nothing will be. You can call again at any time. A page (`requeue_next`,
    /// `delete_next`) or a step of a bulk change may have changed other jobs before.
    #[error("{}: {reason}", .target.not_done())]
    NotDone {
        /// What the call was about.
        target: Target,
        /// Why.
        #[source]
        reason: FailureReason,
    },
    /// The store may have done it, or may still do it. Calling again is safe with two exceptions: repeat an add with its id and
    /// `keep_existing`, and an `extend_by` with [`if_version`](super::Call::if_version), because it could extend twice.
    #[error("{}: {reason}", .target.unknown())]
    Unknown {
        /// What the call was about.
        target: Target,
        /// Why it is unknown.
        #[source]
        reason: FailureReason,
    },
    /// A wait for the [result](super::Provider::result) of a job ended without one.
    #[error("{target} has no result: {why}")]
    NoResult {
        /// The job.
        target: Target,
        /// Why.
        why: Box<NoResult>,
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
        first: Box<CallError>,
    },
}

/// What a call was about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The topic.
    pub topic: TopicName,
    /// The id of the job, even a generated one; `None` if the call was about the whole topic.
    pub id: Option<JobId>,
    pub(super) doing: Doing,
}

/// What a call does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Add(OnDuplicate),
    Command(CommandKind),
    Change,
    Set,
    Query,
    /// A query for the names of topics.
    ListTopics,
}

/// Why a store did not do what a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// An add has neither `keep_existing` nor `replace_existing`, and a job with this id exists, in this state. The old job is untouched.
    /// DONE: it has ended, and its id stays taken for its `unique_for`.
    Exists(State),
    /// The job with this id was deleted, and its id stays taken for its `unique_for`. An add with `replace_existing` takes it all the same.
    Deleted,
    /// A job with this id exists in this state and waits for no time, so [`add_or_extend`](super::Provider::add_or_extend) has left it
    /// as it is.
    NotExtended(State),
    /// Somebody drains the topic, so it takes no new jobs. Add the job again once the draining has ended.
    Draining {
        /// Why it drains.
        reason: String,
        /// Who drained it.
        by: String,
    },
    /// As many jobs of the topic wait as may (`max_waiting`). Add the job again once some have run, or raise the limit.
    TopicFull {
        /// How many jobs wait.
        waiting: usize,
        /// How many may wait.
        limit: usize,
    },
    /// As many jobs of its group wait as may (`group_max_waiting`). Add the job again once some have run, or raise the limit; jobs of
    /// other groups have room.
    GroupFull {
        /// The group.
        group: GroupName,
        /// How many of its jobs wait.
        waiting: usize,
        /// How many may wait.
        limit: usize,
    },
    /// No period of the rate has room for the job (`rate`, or `group_rate`): its weight is over the number of the rate and its burst
    /// together. Raise the rate or its burst, or split the job.
    TooHeavy {
        /// The weight of the job.
        weight: Weight,
        /// The rate.
        rate: Rate,
        /// The group whose rate it is; `None`: the rate of the topic.
        group: Option<GroupName>,
    },
    /// There is no such job.
    NoSuchJob,
    /// The call does nothing to a job in this state, or in another run. Of a command only from
    /// [`or_error_if_unchanged`](super::AckedOrRequeued::or_error_if_unchanged).
    State(State),
    /// The job has this version, and the change named another.
    OtherVersion(u32),
    /// The job was changed 4,294,967,295 times, and its version cannot grow.
    LastVersion,
    /// There is no schedule of this name.
    NoSuchSchedule,
    /// This version of dq cannot read the schedule, for this reason.
    Unreadable(String),
    /// The job set does not take these members, and none of the call was added.
    JobSet {
        /// The name of the set.
        set: JobId,
        /// Why.
        refusal: SetRefusal,
    },
}

/// Why a request was not done, or why its result is unknown.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FailureReason {
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
        /// What says how long: `within` of the call, or the setting `call_deadline`.
        limit: &'static str,
    },
    /// The provider sent the request more than once. The store did not answer one of them, and did nothing for the later ones.
    #[error(
        "the store did not answer when it was first sent, and may have done it then; it did nothing when it was sent again"
    )]
    Unanswered,
    /// The provider could not send the request in time, because earlier requests had no answer; at most `max_in_flight`
    /// requests of `max_in_flight_bytes` are unanswered at a time.
    #[error("it could not be sent within {} (`{limit}`), earlier requests have no answer", format_duration(*.waited))]
    NeverSent {
        /// How long the request waited.
        waited: Duration,
        /// What says how long: `within` of the call, or the setting `call_deadline`.
        limit: &'static str,
    },
    /// The provider was stopped before the request had an answer.
    #[error("the provider was stopped")]
    Stopped,
    /// The task of the provider that had the request panicked. That is a defect of dq; the task has started again.
    #[error("dq panicked; please report this as a bug")]
    Panicked,
}

/// Why a request has no outcome.
#[derive(Debug, Clone)]
pub(super) enum Failed {
    /// The store did nothing, and will do nothing later.
    NotDone(FailureReason),
    /// The store may have executed the request, or may still execute it.
    Unknown(FailureReason),
}

/// What makes an option invalid makes the call invalid.
impl<E> From<E> for CallError
where
    Invalid: From<E>,
{
    fn from(error: E) -> Self {
        Self::Invalid(error.into())
    }
}

impl CallError {
    /// The error of a call whose request has no outcome.
    pub(super) fn failed(target: Target, failed: Failed) -> Self {
        let error = match failed {
            Failed::NotDone(FailureReason::Store(error)) => match &*error {
                StoreError::Draining { reason, by } if target.is_add() => {
                    let refusal = Refusal::Draining { reason: reason.clone(), by: by.clone() };
                    Self::Refused { target, refusal }
                }
                _ => Self::NotDone { target, reason: FailureReason::Store(error) },
            },
            Failed::NotDone(reason) => Self::NotDone { target, reason },
            Failed::Unknown(reason) if target.is_query() => Self::NotDone { target, reason },
            Failed::Unknown(reason) => Self::Unknown { target, reason },
        };
        tracing::debug!(%error, "a call was not done");
        error
    }

    /// Whether the same call can succeed later, though nobody changes it: the store was out of reach, or full, the topic drains, it or the group is full, or the
    /// provider was stopped. An HTTP handler answers 503 to it, and 4xx to any other error.
    ///
    /// [`Unknown`](Self::Unknown) says how to repeat a call that may have been done.
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Self::NotDone { reason, .. } => !matches!(reason, FailureReason::Refused(_)),
            Self::NoResult { why, .. } => matches!(**why, NoResult::TimeOver { .. }),
            Self::Unknown { .. }
            | Self::Refused {
                refusal: Refusal::Draining { .. } | Refusal::TopicFull { .. } | Refusal::GroupFull { .. },
                ..
            } => true,
            Self::SomeFailed { first, .. } => first.may_be_repeated(),
            Self::Invalid(_) | Self::Refused { .. } => false,
        }
    }

    /// The error of the store that kept a call from being done.
    pub(crate) fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::NotDone { reason: FailureReason::Store(error), .. } => Some(error),
            _ => None,
        }
    }

    /// Why the store refused, if that is the error.
    pub(crate) const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the provider was closed before it could send the call.
    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self, Self::NotDone { reason: FailureReason::Stopped, .. })
    }
}

impl Target {
    pub(super) const fn of_topic(topic: TopicName, doing: Doing) -> Self {
        Self { topic, id: None, doing }
    }

    const fn is_add(&self) -> bool {
        matches!(self.doing, Doing::Add(_))
    }

    pub(super) const fn is_query(&self) -> bool {
        matches!(self.doing, Doing::Query | Doing::ListTopics)
    }

    /// The word of the command, if it is one.
    pub(super) const fn command(&self) -> Option<&'static str> {
        match self.doing {
            Doing::Command(kind) => Some(kind.as_str()),
            _ => None,
        }
    }

    fn not_done(&self) -> String {
        match self.doing {
            Doing::Add(_) => format!("{self} was not added"),
            Doing::Command(_) => format!("nothing was done to {self}"),
            Doing::Change | Doing::Set => format!("{self} was not changed"),
            Doing::Query => format!("{self} cannot be queried"),
            Doing::ListTopics => "the topics of the app cannot be listed".to_owned(),
        }
    }

    fn unknown(&self) -> String {
        match self.doing {
            Doing::Add(_) => {
                format!("it is not known whether {self} was added (add it again with this id and `.keep_existing()`)")
            }
            Doing::Command(_) => format!("it is not known what was done to {self} (call again)"),
            _ => format!("it is not known whether {self} was changed"),
        }
    }

    fn refused(&self, refusal: &Refusal) -> String {
        let name = || self.id.as_ref().and_then(JobId::schedule_name).unwrap_or_default();
        match (refusal, self.doing) {
            (Refusal::Exists(state), _) => format!("{self} exists and is {state}: {}", instead(*state)),
            (Refusal::Deleted, _) => format!("{self} was deleted, and its id stays taken: {REPLACE}"),
            (Refusal::NotExtended(state), _) => {
                format!("{self} is {state} and waits for no time: `requeue` runs it, `.replace_existing()` replaces it")
            }
            (Refusal::Draining { reason, by }, _) => {
                let (topic, job) = (&self.topic, self.id.as_ref().map_or("", JobId::as_str));
                format!(
                    "topic `{topic}` drains and takes no new jobs, so job `{job}` was not added: {reason} (by {by})"
                )
            }
            (Refusal::JobSet { set, refusal }, _) => format!("job set `{set}` of topic `{}`: {refusal}", self.topic),
            (Refusal::NoSuchSchedule, _) => format!("there is no schedule `{}`", name()),
            (Refusal::Unreadable(reason), _) => {
                format!("this version of dq cannot read the schedule `{}`, which is as it was: {reason}", name())
            }
            (Refusal::State(state), Doing::Command(_)) => {
                format!("{}: it is {state}, or in another run", self.not_done())
            }
            _ => format!("{}: {refusal}", self.not_done()),
        }
    }
}

/// The topic, or the job with its topic.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "job `{id}` of topic `{}`", self.topic),
            None => write!(f, "topic `{}`", self.topic),
        }
    }
}

/// What became of the job, and what to do.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchJob => f.write_str("there is no such job"),
            Self::NoSuchSchedule => f.write_str("there is no such schedule"),
            Self::Exists(state) => write!(f, "it exists and is {state}"),
            Self::Deleted => f.write_str("it was deleted, and its id stays taken"),
            Self::Draining { reason, by } => write!(f, "its topic drains: {reason} (by {by})"),
            Self::TopicFull { waiting, limit } => {
                write!(f, "{waiting} jobs of its topic wait, and {limit} may (`max_waiting`); add it again once some have run, or raise the limit")
            }
            Self::GroupFull { group, waiting, limit } => {
                write!(f, "{waiting} jobs of its group {group} wait, and {limit} may (`group_max_waiting`); add it again once some have run, or raise the limit")
            }
            Self::TooHeavy { weight, rate, group } => {
                let heavy = TooHeavy { weight: *weight, rate: *rate, group: group.clone() };
                write!(f, "{heavy}; raise the rate or its burst, or split the job")
            }
            Self::State(State::Running) => f.write_str(
                "it is running, and its run decides what comes next; an add with `.replace_existing()` runs it again after that",
            ),
            Self::State(State::Done) => f.write_str("it is done; add it again"),
            Self::State(state) | Self::NotExtended(state) => {
                write!(f, "it is {state} and waits for no time; `requeue` runs it now")
            }
            Self::OtherVersion(version) => write!(f, "its version is {version}"),
            Self::LastVersion => {
                f.write_str("its version cannot grow any more; add it again with `.replace_existing()`")
            }
            Self::Unreadable(reason) => f.write_str(reason),
            Self::JobSet { refusal, .. } => refusal.fmt(f),
        }
    }
}

const REPLACE: &str = "`.keep_existing()` accepts that, `.replace_existing()` runs it again";

/// What to write instead if a job with the id exists.
const fn instead(state: State) -> &'static str {
    match state {
        State::Dead => "`.keep_existing()` leaves it, `.replace_existing()` replaces it, `requeue` runs it again",
        State::Done => REPLACE,
        _ => "`.keep_existing()` leaves it, `.replace_existing()` replaces it",
    }
}

#[cfg(test)]
impl CallError {
    /// The error of a query that the store did not answer.
    pub(crate) fn not_queried(topic: TopicName, error: StoreError) -> Self {
        Self::NotDone { target: Target::of_topic(topic, Doing::Query), reason: FailureReason::Store(Arc::new(error)) }
    }
}

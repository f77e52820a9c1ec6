//! The errors of a store, and what to do about each.

use std::error::Error;
use std::time::Duration;

use humantime::format_duration;

use super::outbox::OUT_OF_ORDER;
use crate::job::limits::OverLimit;
use crate::job::{GroupName, JobId, TopicKey};
use crate::time::Timestamp;

/// A request to the store failed, or its outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The request was sent, and the connection was lost or no answer came in time. Whether the store executed the
    /// request is unknown. dq repeats it after a pause; numbers and tokens make sure that a repeat does nothing twice.
    #[error("the store is unavailable during {operation}: {reason}")]
    Unavailable {
        /// The operation.
        operation: &'static str,
        /// What happened.
        reason: String,
    },
    /// dq cannot reach the store, and the request never left the program: no connection could be made, or it was lost
    /// before. The store did nothing. dq repeats the request after a pause, over a new connection.
    #[error("the store cannot be reached, so {operation} was not sent: {reason}")]
    NotSent {
        /// The operation.
        operation: &'static str,
        /// Why there is no connection, and what to do.
        reason: String,
    },
    /// The store refused the request for now and did nothing: it is loading or failing over. dq repeats the request after a
    /// pause.
    #[error("the store refuses {operation} for now: {reason}")]
    Refused {
        /// The operation.
        operation: &'static str,
        /// The error of the store.
        reason: String,
    },
    /// The memory or the disk of the store is full, or it cannot save, so it refused the request and did nothing. That passes
    /// when somebody makes room, or when jobs that end free some. Nodes go on trying; an add or a command is repeated once,
    /// and then its caller gets the error.
    #[error("the store cannot take {operation}: {reason}")]
    Full {
        /// The operation.
        operation: &'static str,
        /// The error of the store, and what to do.
        reason: String,
    },
    /// The store executed the request, but too few replicas confirmed it in time: a failover may undo it. dq repeats
    /// the request until they confirm it; the repeat does nothing twice. Only with
    /// [`Durability::Wait`](super::Durability::Wait).
    #[error(
        "the store has done {operation}, but {confirmed} of {wanted} replicas confirmed it within {}: a failover may undo it",
        format_duration(*.waited)
    )]
    NotReplicated {
        /// The operation.
        operation: &'static str,
        /// How many replicas confirmed it.
        confirmed: u32,
        /// How many replicas the setting asks for.
        wanted: u32,
        /// How long dq waited for them.
        waited: Duration,
    },
    /// The store rejects the user, the password or the certificate of this program, and did nothing. Fix it: dq tries
    /// again until then.
    #[error("the store does not let this program in: {reason}")]
    Denied {
        /// The operation.
        operation: &'static str,
        /// The error of the store, and what to do.
        reason: String,
    },
    /// This kind of server cannot serve dq, and did nothing: it belongs to a cluster, or to none, and the URL says otherwise. Use another URL.
    #[error("this server cannot serve {operation}: {reason}")]
    Unsupported {
        /// The operation.
        operation: &'static str,
        /// The error of the store, and what to use instead.
        reason: String,
    },
    /// A program with another version of the protocol wrote the topic. Upgrade the older program, or use another app
    /// name.
    #[error(
        "topic {topic} uses protocol version {found}, but this version of dq speaks version {ours}: upgrade the older program, or use another app name"
    )]
    Version {
        /// The topic.
        topic: TopicKey,
        /// The protocol version in the store.
        found: u32,
        /// The protocol version of this program.
        ours: u32,
    },
    /// A key of the topic has a type that dq did not give it. The topic is stopped until you rename or delete that
    /// key.
    #[error("key `{key}` has the wrong type: expected {expected}; rename or delete it, dq did not create it")]
    WrongType {
        /// The key.
        key: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The topic drains, so it takes no new jobs, and the store did nothing. End the draining, or wait until somebody does.
    #[error("the topic drains and takes no new jobs: {reason} (by {by})")]
    Draining {
        /// Why.
        reason: String,
        /// Who drained it.
        by: String,
    },
    /// An import would let more jobs wait than may, and the store did nothing. Raise the limit, or wait until jobs have run.
    #[error("the topic is full: {0}; raise its limit of waiting jobs, or wait until some have run")]
    TopicFull(super::TopicFull),
    /// An import would let more jobs of a group wait than may, and the store did nothing. Raise the limit, or wait until jobs have run.
    #[error(
        "the group {group} is full: {full}; raise the limit of waiting jobs of each group, or wait until some have run"
    )]
    GroupFull {
        /// The group.
        group: GroupName,
        /// The numbers.
        full: super::TopicFull,
    },
    /// A waiting job of an import is heavier than all that its rate allows in a period, and the store did nothing. Raise the rate or its burst.
    #[error("job `{id}` cannot be imported: {heavy}; raise the rate or its burst")]
    TooHeavy {
        /// The job.
        id: JobId,
        /// Weight and rate.
        heavy: super::TooHeavy,
    },
    /// A fence, a position or an order that an import brings is more than a day ahead of the store's clock, and the store did nothing. Correct
    /// the clock that is wrong; `dq import --cut-ahead` takes what a store has exported whose clock was ahead.
    #[error(
        "{what} is {number} ({}), which is more than a day ahead of the store's clock, {clock} ({}): correct the clock that is wrong; `dq import --cut-ahead` cuts such numbers back",
        Timestamp::floor_micros(*.number),
        Timestamp::floor_micros(*.clock)
    )]
    AheadOfClock {
        /// Which number, for example the fence.
        what: &'static str,
        /// The number, in µs since the Unix epoch.
        number: u64,
        /// The store's clock, in µs since the Unix epoch.
        clock: u64,
    },
    /// The store is closed, or has stopped for good because its disk failed it, and did nothing. The reason says what to do; only
    /// a new start of the program opens it again. Only `file:`.
    #[error("the store has stopped and did not do {operation}: {reason}")]
    Halted {
        /// The operation.
        operation: &'static str,
        /// What happened, and what to do.
        reason: String,
    },
    /// Another process, or another opening in this one, uses the directory, and nothing was opened. Only `file:`.
    #[error("{path} is in use by {holder}: stop that process, or use another directory")]
    Held {
        /// The directory.
        path: String,
        /// Who uses it: the process and since when, as far as its lock tells.
        holder: String,
    },
    /// The request is over a limit. The store did nothing.
    #[error("{what} is {size}; the {} is {limit}", if .size < .limit { "least" } else { "limit" })]
    OverLimit {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Any other error of the store. Whether it executed the request is unknown.
    #[error("the store failed during {operation}: {source}")]
    Other {
        /// The operation.
        operation: &'static str,
        /// The error of the store.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns whether the store certainly did not execute the request, and never will.
    pub const fn nothing_done(&self) -> bool {
        matches!(
            self,
            Self::NotSent { .. }
                | Self::Refused { .. }
                | Self::Full { .. }
                | Self::Denied { .. }
                | Self::Unsupported { .. }
                | Self::Version { .. }
                | Self::WrongType { .. }
                | Self::Draining { .. }
                | Self::TopicFull(_)
                | Self::GroupFull { .. }
                | Self::TooHeavy { .. }
                | Self::AheadOfClock { .. }
                | Self::Halted { .. }
                | Self::Held { .. }
                | Self::OverLimit { .. }
        )
    }

    /// Returns whether the error is temporary, so that dq repeats the request.
    pub const fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::NotSent { .. }
                | Self::Refused { .. }
                | Self::Full { .. }
                | Self::NotReplicated { .. }
        )
    }

    /// Returns whether the error may pass although nobody does anything, so that a caller's request is worth many repeats.
    pub const fn passes(&self) -> bool {
        self.is_outage() && !matches!(self, Self::Full { .. })
    }

    /// Returns whether it says that nobody reaches the store.
    pub(crate) const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NotSent { .. })
    }

    /// Returns whether it concerns one topic only, and not the store as a whole.
    pub(crate) const fn is_of_topic(&self) -> bool {
        matches!(
            self,
            Self::Version { .. }
                | Self::WrongType { .. }
                | Self::Draining { .. }
                | Self::OverLimit { .. }
                | Self::AheadOfClock { .. }
        )
    }

    /// Returns whether other topics of the store may still be read.
    pub(crate) const fn may_be_of_topic(&self) -> bool {
        self.is_of_topic() || matches!(self, Self::Other { .. })
    }

    /// Returns whether a target has refused an entry of an outbox because the one before it has not arrived (rule 18). That is sent again first.
    pub(crate) fn is_out_of_order(&self) -> bool {
        matches!(self, Self::Refused { reason, .. } if reason == OUT_OF_ORDER)
    }

    /// Returns whether the connection is of no use any more, so that the next request needs another one.
    pub const fn ends_connection(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::NotSent { .. } | Self::Denied { .. })
    }
}

impl From<OverLimit> for StoreError {
    fn from(OverLimit { what, size, limit, .. }: OverLimit) -> Self {
        let number = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Self::OverLimit { what, size: number(size), limit: number(limit) }
    }
}

/// Rejects a request over its limit, before anything is done.
pub(super) const fn limited(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::OverLimit { what, size, limit }) } else { Ok(()) }
}

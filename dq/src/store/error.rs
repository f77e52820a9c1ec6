//! What a store can fail with, and who must act.

use std::error::Error;
use std::time::Duration;

use humantime::format_duration;

use crate::job::TopicKey;

/// A step, or a look, that got no proper answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store could not be reached, or did not answer in time. Whether the step was executed is unknown: repeat it
    /// under its own number or token, after a pause.
    #[error("the store is unavailable during {operation}: {reason}")]
    Unavailable {
        /// The step.
        operation: &'static str,
        /// What happened.
        reason: String,
    },
    /// The store refused the step for now, before it did anything: it is loading, failing over, or its memory is full.
    /// Repeat it after a pause.
    #[error("the store refuses {operation} for now: {reason}")]
    Refused {
        /// The step.
        operation: &'static str,
        /// What it said.
        reason: String,
    },
    /// The store has done the step, and too few replicas have confirmed it: a failover may undo it, until then it holds.
    /// Repeat it under its own number, which does it once, until they do. Only under
    /// [`Durability::Wait`](super::Durability::Wait).
    #[error(
        "the store has done {operation}, but {confirmed} of {wanted} replicas confirmed it within {}: a failover may undo it",
        format_duration(*.waited)
    )]
    NotReplicated {
        /// The step.
        operation: &'static str,
        /// How many have it.
        confirmed: u32,
        /// How many were asked for.
        wanted: u32,
        /// How long they had.
        waited: Duration,
    },
    /// The store does not let this program in: user, password or certificate. Nothing was sent. Somebody must mend one of
    /// them; it is tried again until then.
    #[error("the store does not let this program in: {reason}")]
    Denied {
        /// The step.
        operation: &'static str,
        /// What it said, and what to do.
        reason: String,
    },
    /// The topic was written under another version of the protocol. Upgrade this program, or use another app name.
    #[error(
        "topic {topic} is kept under protocol version {found}, this dq speaks version {ours}: upgrade the older one, or take another app name"
    )]
    Version {
        /// The topic.
        topic: TopicKey,
        /// The version in the store.
        found: u32,
        /// The version of this dq.
        ours: u32,
    },
    /// A key of the topic is of a type dq did not give it. The topic is stopped until somebody removes that key.
    #[error("key `{key}` has the wrong type: expected {expected}; rename or delete it, it is not dq's")]
    WrongType {
        /// The key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A request was over a limit of the contract. Nothing was done.
    #[error("{what} is {size}, {limit} is the limit")]
    OverLimit {
        /// What was too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Anything else that the store said. Whether the step was executed is unknown.
    #[error("the store failed during {operation}: {source}")]
    Other {
        /// The step.
        operation: &'static str,
        /// What it said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether it is certain that the step was not executed and will not be.
    pub const fn nothing_done(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Denied { .. }
                | Self::Version { .. }
                | Self::WrongType { .. }
                | Self::OverLimit { .. }
        )
    }

    /// Whether it is worth trying again without anybody changing something.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Refused { .. } | Self::NotReplicated { .. })
    }
}

//! The metadata of a record: what a store and a node need to know of a job without reading its payload.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dq_grammar::InvalidValue;
use serde::{Deserialize, Deserializer, Serialize};

use super::group::GroupName;
use super::ident::Fence;
use super::kept::KeptState;
use super::priority::Priority;
use super::weight::Weight;
use crate::time::{Timestamp, in_millis};

#[doc(hidden)]
pub use encoding::{FIELDS, Kind};
pub(super) use encoding::{FieldPlace, after_fields, field_of, group_of};

mod encoding;

/// What dq stores of a job besides its payload.
///
/// Its JSON has the fields that are not the default. Periods and times are in ms; a cause and a priority are words; a state and a result are JSON values.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// Failed runs so far. A rejoin does not change this.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: u16,
    /// Why the last run failed, or why no attempt is left.
    #[serde(skip_serializing_if = "is_default")]
    pub cause: Option<Cause>,
    /// No attempt is left: the next run calls only `on_exhausted`.
    #[serde(skip_serializing_if = "is_default")]
    pub exhausted: bool,
    /// The delay that the job was added with, in whole milliseconds. A rejoin without a time uses it.
    #[serde(skip_serializing_if = "is_default", with = "in_millis")]
    pub delay: Duration,
    /// After this time the job becomes DEAD without a run.
    #[serde(skip_serializing_if = "is_default")]
    pub expires_at: Option<Timestamp>,
    /// How long the job is kept as DONE after its ack, in whole milliseconds; zero means not at all.
    #[serde(skip_serializing_if = "is_default", with = "in_millis")]
    pub retain: Duration,
    /// The fence of the run that parked the job.
    #[serde(skip_serializing_if = "is_default")]
    pub parked_by: Option<Fence>,
    /// How often the due time or the payload was changed since the job was added; see
    /// [`reschedule`](crate::Provider::reschedule).
    #[serde(skip_serializing_if = "is_default")]
    pub version: u32,
    /// When [`add_or_extend`](crate::Provider::add_or_extend) first added the job: its `at_most` counts from then.
    #[serde(skip_serializing_if = "is_default")]
    pub first_added: Option<Timestamp>,
    /// Which of the due jobs of the topic go first.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// How much of the rate of the topic its start spends.
    #[serde(skip_serializing_if = "is_default")]
    pub weight: Weight,
    /// The group of the job.
    #[serde(skip_serializing_if = "is_default")]
    pub group: Option<GroupName>,
    /// Which of the jobs of the group that are due together goes first. The store sets it with the add.
    #[serde(skip_serializing_if = "is_default")]
    pub group_order: u64,
    /// The retry policy of this job, as text, if its add named one.
    #[serde(skip_serializing_if = "is_default")]
    pub retry: Option<String>,
    /// The headers, in the order in which they were added.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: Vec<(String, String)>,
    /// The last error, cut to 4 KiB.
    #[serde(skip_serializing_if = "is_default")]
    pub error: Option<String>,
    /// What the last run, or its last checkpoint, left for the next one.
    #[serde(rename = "kept_state", skip_serializing_if = "is_default", deserialize_with = "present")]
    pub state: Option<KeptState>,
    /// What the run that acked the job has left for callers. A job with a result has no state.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "present")]
    pub result: Option<KeptState>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A value that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<KeptState>, D::Error> {
    KeptState::deserialize(from).map(Some)
}

/// Shows everything but the error of a decoder, which quotes the payload, the state and the result.
impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self.cause {
            Some(Cause::Decode) => {
                self.error.as_ref().map(|_| "(not shown: it quotes the payload; print `error` itself)")
            }
            _ => self.error.as_deref(),
        };
        f.debug_struct("Metadata")
            .field("attempts", &self.attempts)
            .field("cause", &self.cause)
            .field("exhausted", &self.exhausted)
            .field("delay", &self.delay)
            .field("expires_at", &self.expires_at)
            .field("retain", &self.retain)
            .field("parked_by", &self.parked_by)
            .field("version", &self.version)
            .field("first_added", &self.first_added)
            .field("priority", &self.priority)
            .field("weight", &self.weight)
            .field("group", &self.group)
            .field("group_order", &self.group_order)
            .field("retry", &self.retry)
            .field("headers", &self.headers)
            .field("error", &error)
            .field("state", &self.state)
            .field("result", &self.result)
            .finish()
    }
}

/// Why a run failed, or why a job is DEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The handler returned an error.
    Error,
    /// The handler panicked.
    Panic,
    /// The handler timed out.
    Timeout,
    /// The payload does not decode into the payload type of the topic.
    Decode,
    /// The job ran alone in a process that crashed, after as many crashes as `max_crashes` allows.
    Crashes,
    /// Its `expires_after` passed before it ran.
    Expired,
    /// Another program removed the job from its place, so that nobody knows when it was due or who ran it. Requeue it to run it
    /// now.
    PlaceLost,
    /// dq itself panicked at this job and not at others. The error says where. Please report it as a bug; requeue the job once it is fixed.
    Defect,
}

impl Cause {
    /// Every cause, in the order of the numbers in a record.
    #[doc(hidden)]
    pub const ALL: [Self; 8] = [
        Self::Error,
        Self::Panic,
        Self::Timeout,
        Self::Decode,
        Self::Crashes,
        Self::Expired,
        Self::PlaceLost,
        Self::Defect,
    ];

    /// The cause as a word, for example `timeout`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Decode => "decode",
            Self::Crashes => "crashes",
            Self::Expired => "expired",
            Self::PlaceLost => "place lost",
            Self::Defect => "defect",
        }
    }
}

impl FromStr for Cause {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let bad = || InvalidValue::new(format!("there is no cause `{text}`; there is {}", known()));
        Self::ALL.into_iter().find(|cause| cause.as_str() == text).ok_or_else(bad)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The stored bytes are not a record that this version of dq can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRecord {
    /// The record ends too early.
    #[error("the record is cut short")]
    TooShort,
    /// The bytes are not a record, or a newer dq wrote them.
    #[error("this is not a record of this version of dq: another program or a newer version wrote it")]
    Unknown,
    /// This field is not valid.
    #[error("the record is damaged: bad {0}")]
    Damaged(&'static str),
    /// It is over a limit of the format, so no version of dq wrote it.
    #[error(transparent)]
    OverLimit(#[from] super::limits::OverLimit),
    /// The payload has an encoding that this version of dq does not know.
    #[error("the payload has the unknown codec {0:#04x}")]
    UnknownCodec(u8),
}

impl Metadata {
    /// The bytes of its texts and of the state or result, which are all that makes it long.
    pub(crate) fn text_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        let state = self.left().map_or(0, |left| left.as_bytes().len());
        state + headers + [&self.retry, &self.error].into_iter().flatten().map(String::len).sum::<usize>()
    }
}
